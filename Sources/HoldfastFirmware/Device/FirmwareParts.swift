import HoldfastCore

/// What a device is made from: all that its flash says, checked, before anything is written.
///
/// It is apart from the device because that is large: a microcontroller makes it where it stays, and not by a function that
/// may fail.
public struct FirmwareParts<
  Flash: FlashMemory & ~Copyable, Key: AgreementKey & ~Copyable, Random: RandomSource & ~Copyable
>: ~Copyable {
  let deviceID: DeviceID
  let keyID: KeyID
  let key: Key
  let random: Random
  let challenges: ChallengeSource
  let journal: Journal<Flash>

  /// Reads what the owner wrote, and finds the end of what the device wrote.
  ///
  /// - Parameters:
  ///   - key: makes the device's key from its scalar.
  ///   - random: makes the device's source of randomness from a secret of its own and the number of this start, so that poor
  ///     entropy repeats nothing.
  public static func read<Crypto: Cryptography & ~Copyable>(
    _ flash: consuming Flash, using cryptography: inout Crypto,
    key: (borrowing Secret<32>) throws(CryptographyFailure) -> Key,
    random: (borrowing Secret<32>, UInt64) throws(CryptographyFailure) -> Random
  ) throws(FirmwareFault) -> Self {
    let identity = try readIdentity(flash, using: &cryptography)
    let journal = try openJournal(flash)
    let bootCount = try nextBootCount(journal)
    let keyID = try converting { () throws(CryptographyFailure) in
      try HoldfastCore.keyID(of: identity.publicPoint, using: &cryptography)
    }
    let deviceKey = try converting { () throws(CryptographyFailure) in try key(identity.scalar) }
    let randomSecret = try converting { () throws(CryptographyFailure) in
      try derivedSecret("holdfast/1 random seed", from: identity.scalar, using: &cryptography)
    }
    let source = try converting { () throws(CryptographyFailure) in try random(randomSecret, bootCount) }
    let seed = try converting { () throws(CryptographyFailure) in
      try ChallengeSource.seed(from: identity.scalar, using: &cryptography)
    }
    return Self(
      deviceID: identity.deviceID, keyID: keyID, key: deviceKey, random: source,
      challenges: ChallengeSource(seed: seed, bootCount: bootCount, connection: 1), journal: journal)
  }

  private init(
    deviceID: DeviceID, keyID: KeyID, key: consuming Key, random: consuming Random,
    challenges: consuming ChallengeSource, journal: consuming Journal<Flash>
  ) {
    self.deviceID = deviceID
    self.keyID = keyID
    self.key = key
    self.random = random
    self.challenges = challenges
    self.journal = journal
  }

  private static func converting<Result: ~Copyable>(
    _ body: () throws(CryptographyFailure) -> Result
  ) throws(FirmwareFault) -> Result {
    do throws(CryptographyFailure) { return try body() } catch { throw .cryptography }
  }

  private static func readIdentity<Crypto: Cryptography & ~Copyable>(
    _ flash: borrowing Flash, using cryptography: inout Crypto
  ) throws(FirmwareFault) -> DeviceIdentity {
    do throws(ProvisionFault) { return try Provision.identity(in: flash, using: &cryptography) } catch {
      throw .provision(error)
    }
  }

  private static func openJournal(_ flash: consuming Flash) throws(FirmwareFault) -> Journal<Flash> {
    do throws(StoreFault) { return try Journal(opening: flash) } catch { throw .store(error) }
  }

  private static func nextBootCount(_ journal: borrowing Journal<Flash>) throws(FirmwareFault) -> UInt64 {
    do throws(StoreFault) { return try StoreState(lastIn: journal).bootCount + 1 } catch { throw .store(error) }
  }
}

/// Why a device cannot start: it denies everything.
public enum FirmwareFault: Error, Equatable {
  /// It has no identity.
  case provision(ProvisionFault)
  /// What it must remember cannot be read or written.
  case store(StoreFault)
  case cryptography
}
