import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastProver
import HoldfastTransport

/// A person who uses devices, with an authenticator: the exchanges in which a device and the authenticator agree.
///
/// Codes and seals are made by `Authenticator` itself (``open()``). Functions that are not `async` block their thread. Any number of
/// threads may call them; each call opens the authenticator for itself.
public struct AuthenticatorUser: Sendable {
  /// The path of the authenticator's folder; empty if its state is in a store of the app's own.
  public let authenticator: String
  /// The app's own store, and the last stamp that the app knows of.
  private let store: (any AuthenticatorStore)?
  private let stamp: AuthenticatorStamp?

  /// Creates the user. Nothing is read or written yet.
  ///
  /// - Parameter path: the path of the authenticator's folder, which the first activation creates.
  public init(authenticator path: String) { (authenticator, store, stamp) = (path, nil, nil) }

  /// Creates the user of an authenticator whose state the app keeps itself. Nothing is read or written yet.
  ///
  /// - Parameters:
  ///   - store: the place of the state, which the first activation fills.
  ///   - stamp: the last stamp that the app knows of; an older state is not used.
  public init(store: any AuthenticatorStore, notBefore stamp: AuthenticatorStamp? = nil) {
    (authenticator, self.store, self.stamp) = ("", store, stamp)
  }

  /// Becomes a user of a device, with a code from its owner. Afterwards, the device and the authenticator share fresh secrets.
  ///
  /// Source: docs/protocol.md, Activation.
  ///
  /// - Parameters:
  ///   - code: the code from the device's owner. It is used up if the device confirms the activation.
  ///   - endpoint: the address at which the device serves.
  ///   - protection: the PIN or key that the new secrets need from then on, or nothing. The device's owner may demand more.
  ///   - replacing: whether records of the same user are replaced. They stay in use until the device has confirmed the new ones.
  ///   - timeoutMilliseconds: the time for the whole exchange.
  ///   - clock: the clock from which that of the device differs by the offset that is stored.
  /// - Throws: ``UserExchangeError/exchange(_:)`` if the device cannot be reached, refuses the code, or does not know it;
  ///   ``UserExchangeError/alreadyActivated(_:)``, after which the code is still good; ``UserExchangeError/authenticator(_:)``,
  ///   with `demanded` if the protection is weaker than the owner demands, after which the code is still good too;
  ///   ``UserExchangeError/unknownEnd(_:_:)`` if the records are stored, and the device's confirmation was lost:
  ///   `synchronise` finds out.
  @discardableResult
  public func activate(
    with code: consuming OneUseCode, at endpoint: Endpoint, protection: borrowing ProtectionSecret,
    replacing: Bool = false, timeoutMilliseconds: Int = 30_000, clock: any Clock & Sendable = SystemClock()
  ) throws(UserExchangeError) -> ActivatedUser {
    try exchange(code, .endpoint(endpoint), protection, replacing ? .any : nil, timeoutMilliseconds, clock)
  }

  /// The same over a channel that is already connected to the device, and on which nothing has been received yet. It stays open.
  @discardableResult
  public func activate(
    with code: consuming OneUseCode, over channel: any MessageChannel, protection: borrowing ProtectionSecret,
    replacing: Bool = false, timeoutMilliseconds: Int = 30_000, clock: any Clock & Sendable = SystemClock()
  ) throws(UserExchangeError) -> ActivatedUser {
    try exchange(code, .channel(channel), protection, replacing ? .any : nil, timeoutMilliseconds, clock)
  }

  /// Ends a lockout at a device, and gives the authenticator new secrets under a new PIN or key, because the old one was forgotten.
  /// The old records stay in use until the device has confirmed the new ones.
  ///
  /// Source: docs/protocol.md, Activation.
  ///
  /// - Parameters:
  ///   - code: the code from the device's owner for this purpose, which is used up.
  ///   - endpoint: the address at which the device serves.
  ///   - protection: the new PIN or key.
  ///   - timeoutMilliseconds: the time for the whole exchange.
  ///   - clock: the clock from which that of the device differs by the offset that is stored.
  /// - Throws: the errors of `activate(with:at:protection:replacing:timeoutMilliseconds:clock:)`, and
  ///   ``UserExchangeError/authenticator(_:)`` with `unknownRecord` if the authenticator has no record of the user, after which
  ///   the code is still good.
  @discardableResult
  public func unlock(
    with code: consuming OneUseCode, at endpoint: Endpoint, newProtection protection: borrowing ProtectionSecret,
    timeoutMilliseconds: Int = 30_000, clock: any Clock & Sendable = SystemClock()
  ) throws(UserExchangeError) -> ActivatedUser {
    _ = try open()
    return try exchange(code, .endpoint(endpoint), protection, .known, timeoutMilliseconds, clock)
  }

  /// The same over a channel that is already connected to the device, and on which nothing has been received yet. It stays open.
  @discardableResult
  public func unlock(
    with code: consuming OneUseCode, over channel: any MessageChannel,
    newProtection protection: borrowing ProtectionSecret, timeoutMilliseconds: Int = 30_000,
    clock: any Clock & Sendable = SystemClock()
  ) throws(UserExchangeError) -> ActivatedUser {
    _ = try open()
    return try exchange(code, .channel(channel), protection, .known, timeoutMilliseconds, clock)
  }

  /// The records that an activation may replace.
  enum Replacing {
    /// Those of the user, if there are any.
    case any
    /// Those of the user, who must have some.
    case known
  }

  /// Runs an activation; only `device` may end it, if there is one.
  func exchange(
    _ code: consuming OneUseCode, _ address: DeviceAddress, _ protection: borrowing ProtectionSecret,
    _ replacing: Replacing?, _ timeoutMilliseconds: Int, _ clock: any Clock & Sendable, only device: DeviceID? = nil
  ) throws(UserExchangeError) -> ActivatedUser {
    let authenticator = try create()
    let session = ActivationSession(
      code: code, for: .activation, cryptography: OpenSSLCryptography(), random: SystemRandom())
    var activated: ActivatedUser?
    var refusal: UserExchangeError?
    do throws(ProverError) {
      _ = try ActivationExchange(at: address, timeoutMilliseconds: timeoutMilliseconds).run(session) { session in
        guard let grant = session.grant else { return false }
        let granted = ActivatedUser(user: grant.user.description, device: session.deviceID)
        guard device == nil || granted.device == device else {
          refusal = .recordsOfAnotherDevice
          return false
        }
        do throws(AuthenticatorFault) {
          if replacing == .known, try authenticator.records(user: granted.user).isEmpty { throw .unknownRecord }
          try authenticator.take(
            grant, of: granted, session, protection, replacing != nil, now: clock.unixSeconds())
        } catch {
          refusal = error == .exists ? .alreadyActivated(granted.user) : .authenticator(error)
          return false
        }
        activated = granted
        return true
      }
    } catch {
      guard let activated else { throw .exchange(error) }
      throw .unknownEnd(activated, error)
    }
    if let refusal { throw refusal }
    guard let activated else { throw .exchange(.activation(.malformed)) }
    try using { () throws(AuthenticatorFault) in
      if try authenticator.completeReplacement(of: activated.user, deviceID: activated.device) { return }
      try authenticator.confirmActivation(user: activated.user, deviceID: activated.device)
    }
    return activated
  }

  /// Ends a lockout at a device, with a code from its owner. The authenticator is not involved.
  ///
  /// Source: docs/protocol.md, Unlocking.
  ///
  /// - Parameters:
  ///   - code: the code from the device's owner, which is used up.
  ///   - endpoint: the address at which the device serves.
  ///   - timeoutMilliseconds: the time for the whole exchange.
  /// - Throws: ``UserExchangeError/exchange(_:)``.
  public static func unlock(
    with code: consuming OneUseCode, at endpoint: Endpoint, timeoutMilliseconds: Int = 30_000
  ) throws(UserExchangeError) {
    try unlock(with: code, at: .endpoint(endpoint), timeoutMilliseconds: timeoutMilliseconds)
  }

  /// The same over a channel that is already connected to the device, and on which nothing has been received yet. It stays open.
  public static func unlock(
    with code: consuming OneUseCode, over channel: any MessageChannel, timeoutMilliseconds: Int = 30_000
  ) throws(UserExchangeError) {
    try unlock(with: code, at: .channel(channel), timeoutMilliseconds: timeoutMilliseconds)
  }

  private static func unlock(
    with code: consuming OneUseCode, at address: DeviceAddress, timeoutMilliseconds: Int
  ) throws(UserExchangeError) {
    let session = ActivationSession(
      code: code, for: .unlock, cryptography: OpenSSLCryptography(), random: SystemRandom())
    let isUnlocked: Bool
    // An unlocking has nothing to store.
    do throws(ProverError) {
      isUnlocked = try ActivationExchange(at: address, timeoutMilliseconds: timeoutMilliseconds).run(session) { _ in
        false
      }
    } catch { throw .exchange(error) }
    guard isUnlocked else { throw .exchange(.activation(.malformed)) }
  }

  /// Opens the authenticator, to list its records, and to make codes and seals.
  ///
  /// - Throws: ``UserExchangeError/authenticator(_:)``.
  public func open() throws(UserExchangeError) -> Authenticator {
    try using { () throws(AuthenticatorFault) in
      guard let store else { return try AuthenticatorFolder.open(at: authenticator) }
      return try Authenticator(store: store, notBefore: stamp)
    }
  }

  private func create() throws(UserExchangeError) -> Authenticator {
    guard store == nil else { return try open() }
    return try using { () throws(AuthenticatorFault) in try AuthenticatorFolder.create(at: authenticator) }
  }

  /// Runs a step on the authenticator, and converts its fault.
  func using<Result: ~Copyable>(_ body: () throws(AuthenticatorFault) -> Result) throws(UserExchangeError) -> Result {
    do throws(AuthenticatorFault) { return try body() } catch { throw .authenticator(error) }
  }
}

/// A user who was activated on a device.
public struct ActivatedUser: Sendable, Hashable {
  /// The user's name, as the owner gave it, 1 to 32 bytes.
  public let user: String
  /// The id of the device.
  public let device: DeviceID
}

extension Authenticator {
  /// Stores the device's grant, unconfirmed, and the difference of its clock from `now`, in Unix seconds.
  fileprivate func take(
    _ grant: ActivationGrant, of activated: ActivatedUser, _ session: borrowing ActivationExchange.Session,
    _ protection: borrowing ProtectionSecret, _ replacing: Bool, now: UInt64?
  ) throws(AuthenticatorFault) {
    let demand = session.demand
    let records = session.withSecrets { secrets in grant.records(secrets, of: activated, demand) } ?? []
    var random = SystemRandom()
    let isWaiting = try store(records, protection: protection, replacing: replacing, random: &random)
    let offset = Int64(clamping: grant.time) - Int64(clamping: now ?? 0)
    let offsetSeconds = offset.magnitude <= UInt64(UInt32.max) ? offset : nil
    if isWaiting {
      try synchroniseWaiting(user: activated.user, offsetSeconds: offsetSeconds, now: now ?? 0)
    } else {
      try synchronise(
        user: activated.user, offsetSeconds: offsetSeconds, otpNext: nil, sealNext: nil, now: now ?? 0)
    }
  }
}

extension ActivationGrant {
  /// Creates the records for a user with these secrets.
  fileprivate func records(
    _ secrets: borrowing UserSecrets, of activated: ActivatedUser, _ demand: ProtectionDemand?
  ) -> [NewRecord] {
    let (user, deviceID) = (activated.user, activated.device)
    var records: [NewRecord] = []
    if let otp = methods[.otp] {
      records.append(
        NewRecord(
          index: Int(CodePurpose.otp.rawValue), purpose: .otp,
          credential: Credential(user: user, method: otp, secret: SecretBytes(copying: secrets.otp)),
          deviceID: deviceID, lookAheadWindow: CodeLimits().counterLookAhead, demand: demand))
    }
    if let seal = methods[.seal] {
      records.append(
        NewRecord(
          index: Int(CodePurpose.seal.rawValue), purpose: .seal,
          credential: Credential(user: user, method: seal, secret: SecretBytes(copying: secrets.seal)),
          deviceID: deviceID, lookAheadWindow: CodeLimits().counterLookAhead,
          sealFieldByteLimit: sealParameterLength == 16 ? nil : Int(sealParameterLength), demand: demand))
    }
    records.append(
      NewRecord(
        index: Int(CodePurpose.host.rawValue), purpose: .host,
        credential: Credential(user: user, method: .ocra(.host), secret: SecretBytes(copying: secrets.host)),
        deviceID: deviceID))
    return records
  }
}

extension SecretBytes {
  fileprivate init(copying secret: borrowing Secret<32>) {
    self = secret.withBytes { SecretBytes(copying: $0) }
  }
}
