import HoldfastCore

/// The parts of a device, read from its flash and checked before anything is written.
///
/// They are separate from ``FirmwareDevice`` because that is large: a microcontroller constructs it in its final place, and
/// not in a function that can throw.
public struct FirmwareParts<
  Flash: FlashMemory & ~Copyable, Key: AgreementKey & ~Copyable, Random: RandomSource & ~Copyable
>: ~Copyable {
  let deviceID: DeviceID
  let keyID: KeyID
  let key: Key
  let random: Random
  let challenges: ChallengeSource
  let journal: Journal<Flash>

  /// Reads and checks the provision, and finds the end of the journal.
  ///
  /// - Parameters:
  ///   - flash: the device's flash, of which nothing is written.
  ///   - cryptography: an implementation of the primitives.
  ///   - key: makes the device's key from its scalar, 32 bytes, big-endian.
  ///   - random: makes the device's random source from a separate 32-byte secret and the number of this start. Both together
  ///     keep its output from repeating when the entropy is poor.
  ///
  /// - Throws: a ``FirmwareFault`` that says which part failed.
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

/// The reason that a device cannot start. It then denies everything.
public enum FirmwareFault: Error, Equatable {
  /// The device has no valid identity.
  case provision(ProvisionFault)
  /// The store cannot be read or written.
  case store(StoreFault)
  /// A cryptographic operation failed.
  case cryptography
}
