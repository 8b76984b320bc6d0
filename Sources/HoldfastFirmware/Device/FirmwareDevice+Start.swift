import HoldfastCore

extension FirmwareDevice
where
  Flash: ~Copyable, Crypto: ~Copyable, Key: ~Copyable, Random: ~Copyable, Hardware: ~Copyable, Machine: ~Copyable
{
  /// Reads what the owner wrote and what the device keeps, and counts the start, durably.
  ///
  /// - Parameters:
  ///   - cryptography: makes what the session and the store each have one of.
  ///   - key: makes the device's key from its scalar and its public point.
  ///   - random: makes the device's source of randomness from a secret of its own and the number of this start, so that poor
  ///     entropy repeats nothing.
  public static func start(
    flash: consuming Flash, board: consuming Hardware, machine: consuming Machine, clock: Time,
    cryptography: () -> Crypto,
    key: (borrowing Secret<32>, P256Point) throws(CryptographyFailure) -> Key,
    random: (borrowing Secret<32>, UInt64) throws(RandomFailure) -> Random
  ) throws(FirmwareFault) -> Self {
    let session = try startSession(
      flash: flash, clock: clock, cryptography: cryptography, key: key, random: random, board: &board)
    return Self(session: session, board: board, machine: machine, clock: clock)
  }

  private static func startSession(
    flash: consuming Flash, clock: Time, cryptography: () -> Crypto,
    key: (borrowing Secret<32>, P256Point) throws(CryptographyFailure) -> Key,
    random: (borrowing Secret<32>, UInt64) throws(RandomFailure) -> Random, board: inout Hardware
  ) throws(FirmwareFault) -> Session {
    var crypto = cryptography()
    let provision = try readProvision(flash, using: &crypto)
    let keyID = try makeKeyID(provision.publicPoint, using: &crypto)
    let deviceKey = try makeKey(provision.scalar, provision.publicPoint, key)
    let seed = try makeChallengeSeed(provision.scalar, using: &crypto)
    var store = try openStore(flash, cryptography())
    let bootCount: UInt64
    do throws(StoreFailure) { bootCount = try store.start() } catch { throw .store(.flash) }
    let source = try makeRandom(provision.scalar, bootCount, random, using: &crypto)
    board.notify(.started(bootCount: bootCount))
    return Session(
      deviceID: provision.deviceID, keyID: keyID, cryptography: crypto, key: deviceKey, store: store,
      policy: provision.policy, random: source, clock: clock,
      challenges: ChallengeSource(seed: seed, bootCount: bootCount, connection: 1))
  }

  private static func makeKeyID(
    _ point: P256Point, using crypto: inout Crypto
  ) throws(FirmwareFault) -> KeyID {
    do throws(CryptographyFailure) { return try keyID(of: point, using: &crypto) } catch { throw .cryptography }
  }

  private static func makeKey(
    _ scalar: borrowing Secret<32>, _ point: P256Point,
    _ key: (borrowing Secret<32>, P256Point) throws(CryptographyFailure) -> Key
  ) throws(FirmwareFault) -> Key {
    do throws(CryptographyFailure) { return try key(scalar, point) } catch { throw .cryptography }
  }

  private static func makeChallengeSeed(
    _ scalar: borrowing Secret<32>, using crypto: inout Crypto
  ) throws(FirmwareFault) -> Secret<32> {
    do throws(CryptographyFailure) { return try ChallengeSource.seed(from: scalar, using: &crypto) } catch {
      throw .cryptography
    }
  }

  private static func makeRandom(
    _ scalar: borrowing Secret<32>, _ bootCount: UInt64,
    _ random: (borrowing Secret<32>, UInt64) throws(RandomFailure) -> Random, using crypto: inout Crypto
  ) throws(FirmwareFault) -> Random {
    let seed: Secret<32>
    do throws(CryptographyFailure) {
      seed = try derivedSecret("holdfast/1 random seed", from: scalar, using: &crypto)
    } catch { throw .cryptography }
    do throws(RandomFailure) { return try random(seed, bootCount) } catch { throw .cryptography }
  }

  private static func readProvision(
    _ flash: borrowing Flash, using crypto: inout Crypto
  ) throws(FirmwareFault) -> Provision {
    do throws(ProvisionFault) { return try Provision(reading: flash, using: &crypto) } catch {
      throw .provision(error)
    }
  }

  private static func openStore(
    _ flash: consuming Flash, _ crypto: consuming Crypto
  ) throws(FirmwareFault) -> FlashStore<Flash, Crypto> {
    do throws(StoreFault) {
      return try FlashStore.open(flash, using: crypto)
    } catch { throw .store(error) }
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
