import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastProver
import HoldfastTransport

/// Proofs with a one-time password that the authenticator makes meanwhile.
extension AuthenticatorUser {
  /// Proves to a device, with a one-time password of a record, and has it carry out a request.
  ///
  /// If the record's method is OCRA, the password covers a challenge of the device: the device first proves with a host code
  /// that it knows the user, and it accepts the password only on that connection.
  ///
  /// Source: docs/protocol.md, Codes.
  ///
  /// - Parameters:
  ///   - request: the command and its parameters, and a seal if the command needs one, too.
  ///   - record: a record of purpose `otp`. Only its device may answer.
  ///   - protection: the PIN or key that the record needs. A wrong PIN makes a wrong password, which the device counts.
  ///   - prover: the app that proves itself to the device. For OCRA, policy must allow it `host-code`.
  ///   - endpoint: the address at which the device serves.
  ///   - options: the time, for each of the exchanges.
  ///   - clock: the clock by which a time-based password is made.
  /// - Returns: the device's verdict, also if it is a denial.
  /// - Throws: ``UserExchangeError``; `wrongHostCode` if the device does not know the user's secrets, after which no password
  ///   was made.
  public func prove(
    _ request: borrowing Request, withPasswordOf record: Record, under protection: borrowing ProtectionSecret,
    as prover: Prover, at endpoint: Endpoint, options: ProofOptions = ProofOptions(),
    clock: any Clock & Sendable = SystemClock()
  ) throws(UserExchangeError) -> ProofOutcome {
    try prove(request, record, protection, as: prover, .endpoint(endpoint), options, clock)
  }

  /// The same over a channel that is already connected to the device, and on which nothing has been received yet. It stays open.
  public func prove(
    _ request: borrowing Request, withPasswordOf record: Record, under protection: borrowing ProtectionSecret,
    as prover: Prover, over channel: any MessageChannel, options: ProofOptions = ProofOptions(),
    clock: any Clock & Sendable = SystemClock()
  ) throws(UserExchangeError) -> ProofOutcome {
    try prove(request, record, protection, as: prover, .channel(channel), options, clock)
  }

  /// Has a device check the PIN or key of a record, before the same one is used for something else.
  ///
  /// The command is sent twice, first without a password: a device that accepts that does not check any, and carries the
  /// command out. It counts a wrong PIN as a failure.
  ///
  /// - Parameters:
  ///   - protection: the PIN or key.
  ///   - record: a record of purpose `otp`.
  ///   - request: a harmless command that needs a one-time password, and no seal.
  ///   - prover: the app that proves itself to the device.
  ///   - endpoint: the address at which the record's device serves.
  ///   - options: the time, for each of the exchanges.
  ///   - clock: the clock by which a time-based password is made.
  /// - Throws: ``UserExchangeError``; `notAccepted` if the PIN is wrong, or if the device denies the command for another reason;
  ///   `nothingChecked` if the command needs no password.
  @inline(never)
  public func check(
    _ protection: borrowing ProtectionSecret, of record: Record, with request: borrowing Request, as prover: Prover,
    at endpoint: Endpoint, options: ProofOptions = ProofOptions(), clock: any Clock & Sendable = SystemClock()
  ) throws(UserExchangeError) {
    let without = try Self.prove(request, as: prover, .endpoint(endpoint), options, for: record)
    guard without.verdict.status != .accepted else { throw .nothingChecked }
    guard without.verdict.status == .factorMissing, without.verdict.notice.missingFactors == .otp else {
      throw .notAccepted(without)
    }
    let outcome = try prove(request, record, protection, as: prover, .endpoint(endpoint), options, clock)
    guard outcome.verdict.status == .accepted else { throw .notAccepted(outcome) }
  }

  /// Becomes another user of a device, or the same user again, under the PIN or key that a record has already. The device checks it
  /// first, so that a mistyped PIN changes nothing.
  ///
  /// - Parameters:
  ///   - code: the code from the device's owner. It is used up if the device confirms the activation.
  ///   - endpoint: the address at which the record's device serves.
  ///   - record: a record of purpose `otp`, whose device must be the one that activates.
  ///   - protection: the PIN or key of the record, which the new secrets need from then on.
  ///   - request: a harmless command that needs a one-time password, and no seal.
  ///   - prover: the app that proves itself to the device.
  ///   - replacing: whether records of the same user are replaced.
  ///   - options: the time, for each of the exchanges.
  ///   - clock: the clock from which that of the device differs by the offset that is stored.
  /// - Throws: the errors of ``check(_:of:with:as:at:options:clock:)`` and of
  ///   `activate(with:at:protection:replacing:timeoutMilliseconds:clock:)`; `recordsOfAnotherDevice` if the code is of another
  ///   device, after which it is still good.
  @discardableResult
  public func activate(
    with code: consuming OneUseCode, at endpoint: Endpoint, sharing protection: borrowing ProtectionSecret,
    of record: Record, checkedWith request: borrowing Request, as prover: Prover, replacing: Bool = false,
    options: ProofOptions = ProofOptions(), clock: any Clock & Sendable = SystemClock()
  ) throws(UserExchangeError) -> ActivatedUser {
    guard let device = record.deviceID else { throw .recordsOfAnotherDevice }
    try check(protection, of: record, with: request, as: prover, at: endpoint, options: options, clock: clock)
    return try exchange(
      code, .endpoint(endpoint), protection, replacing ? .any : nil, options.timeoutMilliseconds, clock, only: device)
  }

  @inline(never)
  private func prove(
    _ request: borrowing Request, _ record: Record, _ protection: borrowing ProtectionSecret, as prover: Prover,
    _ address: DeviceAddress, _ options: ProofOptions, _ clock: any Clock & Sendable
  ) throws(UserExchangeError) -> ProofOutcome {
    var address = address
    var challenge: DeviceChallenge?
    var own: Connection?
    defer { own?.shutdown() }
    if case .ocra = record.method {
      let channel: any MessageChannel
      switch address {
      case .channel(let given): channel = given
      case .endpoint(let endpoint):
        let connection = try Self.connect(to: endpoint, options)
        (own, channel) = (connection, connection)
      }
      address = .channel(channel)
      challenge = try self.challenge(for: record, as: prover, over: channel, options)
    }
    let authenticator = try open()
    let code = try using { () throws(AuthenticatorFault) in
      try authenticator.code(for: record, with: protection, challenge: challenge?.digits, clock: clock)
    }
    guard let user = BoundedText<32>(record.user), let text = BoundedText<16>(code.text) else {
      throw .authenticator(.badUser)
    }
    var request = request.copy()
    request.codes[.otp] = UserCode(user: user, code: text)
    return try Self.prove(request, as: prover, address, options, for: record)
  }

  /// Returns the challenge of the record's device for this channel, after the device has proved that it knows the user.
  private func challenge(
    for record: Record, as prover: Prover, over channel: any MessageChannel, _ options: ProofOptions
  ) throws(UserExchangeError) -> DeviceChallenge {
    let authenticator = try open()
    let host = try using { () throws(AuthenticatorFault) in
      try authenticator.records(user: record.user).first { $0.purpose == .host && $0.deviceID == record.deviceID }
    }
    guard let host else { throw .authenticator(.unknownRecord) }
    guard let challenge = try challengeDevice(with: host, as: prover, over: channel, options: options) else {
      throw .wrongHostCode
    }
    return challenge
  }

  private static func connect(
    to endpoint: Endpoint, _ options: ProofOptions
  ) throws(UserExchangeError) -> Connection {
    do throws(TransportError) {
      return try Connection.connect(to: endpoint, timeoutMilliseconds: options.timeoutMilliseconds)
    } catch { throw .exchange(.transport(error)) }
  }

  /// Proves to the record's device, if that is known.
  @inline(never)
  private static func prove(
    _ request: borrowing Request, as prover: Prover, _ address: DeviceAddress, _ options: ProofOptions,
    for record: Record
  ) throws(UserExchangeError) -> ProofOutcome {
    var options = options
    options.device = record.deviceID ?? options.device
    do throws(ProverError) {
      return switch address {
      case .endpoint(let endpoint): try prover.prove(request, at: endpoint, options: options)
      case .channel(let channel): try prover.prove(request, over: channel, options: options)
      }
    } catch { throw .exchange(error) }
  }
}
