import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastProver
import HoldfastTransport

extension AuthenticatorUser {
  /// Takes over a device's time and counters, which it sends in a sealed verdict. An activation whose end was lost is completed
  /// first, if the device proves that it has it.
  ///
  /// Counters never go back. If the device has accepted a code from after a change of the PIN, the change is confirmed.
  ///
  /// Source: docs/protocol.md, the command `user-sync`.
  ///
  /// - Parameters:
  ///   - user: the name of the user; nil for the only user of the authenticator.
  ///   - prover: the app that proves itself to the device. Policy must allow it `user-sync`, and `host-code` for completing an
  ///     activation.
  ///   - endpoint: the address at which the device serves.
  ///   - options: the device that must answer, and the time. If the user was activated on only one of several enrolled devices,
  ///     that one must answer.
  ///   - clock: the clock from which that of the device differs.
  /// - Throws: ``UserExchangeError``.
  public func synchronise(
    _ user: String? = nil, as prover: Prover, at endpoint: Endpoint, options: ProofOptions = ProofOptions(),
    clock: any Clock & Sendable = SystemClock()
  ) throws(UserExchangeError) -> SynchronisedUser {
    try synchronise(user, by: DeviceInquiry(prover, .endpoint(endpoint), options), clock: clock)
  }

  /// The same over a channel that is already connected to the device, and on which nothing has been received yet. It stays open.
  public func synchronise(
    _ user: String? = nil, as prover: Prover, over channel: any MessageChannel, options: ProofOptions = ProofOptions(),
    clock: any Clock & Sendable = SystemClock()
  ) throws(UserExchangeError) -> SynchronisedUser {
    try synchronise(user, by: DeviceInquiry(prover, .channel(channel), options), clock: clock)
  }

  private func synchronise(
    _ user: String?, by inquiry: DeviceInquiry, clock: any Clock & Sendable
  ) throws(UserExchangeError) -> SynchronisedUser {
    let authenticator = try open()
    let user = if let user { user } else { try onlyUser(of: authenticator) }
    var inquiry = inquiry
    let all = try using { () throws(AuthenticatorFault) in try authenticator.records(user: user) }
    guard !all.isEmpty else { throw .authenticator(.unknownRecord) }
    let known = try inquiry.devices().filter { device in all.contains { $0.isOf(device) } }
    guard !known.isEmpty else { throw .recordsOfAnotherDevice }
    if known.count == 1 { inquiry.options.device = known.first }
    let (device, answer) = try inquiry.ask(UserCommandName.synchronise, [user])
    let own = all.filter { $0.isOf(device) }
    guard !own.isEmpty else { throw .recordsOfAnotherDevice }
    guard let said = try UserPositions(answer) else { throw .unknownUser }
    inquiry.options.device = device
    try complete(own, of: user, on: device, by: inquiry, in: authenticator)
    guard let now = clock.unixSeconds(), let seconds = Int64(exactly: said.time), let own = Int64(exactly: now) else {
      throw .noClock
    }
    try using { () throws(AuthenticatorFault) in
      try authenticator.synchronise(
        user: user, deviceID: device, offsetSeconds: seconds - own, otpNext: said.otp, sealNext: said.seal, now: now)
    }
    return SynchronisedUser(
      user: user, device: device, clockOffsetSeconds: seconds - own, otpNext: said.otp, sealNext: said.seal)
  }

  /// Challenges a device, and checks its host code, before a code is typed into it.
  ///
  /// Source: docs/protocol.md, the command `host-code`; RFC 6287 §7.2.
  ///
  /// - Parameters:
  ///   - record: the record of purpose `host`.
  ///   - prover: the app that proves itself to the device.
  ///   - endpoint: the address at which the device serves.
  ///   - options: the device that must answer, and the time.
  /// - Returns: the device's own challenge if it has proved itself; nil if its answer is wrong.
  /// - Throws: ``UserExchangeError``.
  public func challengeDevice(
    with record: Record, as prover: Prover, at endpoint: Endpoint, options: ProofOptions = ProofOptions()
  ) throws(UserExchangeError) -> DeviceChallenge? {
    try challengeDevice(with: record, by: DeviceInquiry(prover, .endpoint(endpoint), options))
  }

  /// The same over a channel that is already connected to the device, and on which nothing has been received yet. It stays open.
  public func challengeDevice(
    with record: Record, as prover: Prover, over channel: any MessageChannel, options: ProofOptions = ProofOptions()
  ) throws(UserExchangeError) -> DeviceChallenge? {
    try challengeDevice(with: record, by: DeviceInquiry(prover, .channel(channel), options))
  }

  private func challengeDevice(
    with record: Record, by inquiry: DeviceInquiry
  ) throws(UserExchangeError) -> DeviceChallenge? {
    let authenticator = try open()
    var inquiry = inquiry
    let known = try inquiry.devices().filter { record.isOf($0) }
    if known.count == 1 { inquiry.options.device = known.first }
    return try proveHost(record, by: inquiry, in: authenticator)
  }

  /// Asks a device whether it has locked a user out, before a code is typed. The question costs no attempt.
  ///
  /// Source: docs/protocol.md, the command `user-state`.
  ///
  /// - Parameters:
  ///   - user: the name of the user, 1 to 32 bytes.
  ///   - prover: the app that proves itself to the device, whose policy must name the command.
  ///   - endpoint: the address at which the device serves.
  ///   - options: the device that must answer, and the time.
  /// - Throws: ``UserExchangeError``.
  public static func state(
    of user: String, as prover: Prover, at endpoint: Endpoint, options: ProofOptions = ProofOptions()
  ) throws(UserExchangeError) -> UserLockState {
    let inquiry = DeviceInquiry(prover, .endpoint(endpoint), options)
    return try UserLockState(try inquiry.ask(UserCommandName.state, [user]).result)
  }

  /// Completes an activation whose end was lost. Only the device's host code shows whether it accepted the activation; the fact
  /// that it knows a user with the name does not.
  private func complete(
    _ records: [Record], of user: String, on device: DeviceID, by inquiry: DeviceInquiry,
    in authenticator: Authenticator
  ) throws(UserExchangeError) {
    try completeReplacement(of: user, on: device, by: inquiry, in: authenticator)
    let open = records.filter { !$0.isConfirmed }
    guard !open.isEmpty else { return }
    guard let host = open.first(where: { $0.purpose == .host }),
      try proveHost(host, by: inquiry, in: authenticator) != nil
    else { throw .notActivated }
    try using { () throws(AuthenticatorFault) in try authenticator.confirmActivation(user: user, deviceID: device) }
  }

  /// Completes an activation that replaces records, whose end was lost. The old records stay if the device does not have the new
  /// secrets, or does not say.
  private func completeReplacement(
    of user: String, on device: DeviceID, by inquiry: DeviceInquiry, in authenticator: Authenticator
  ) throws(UserExchangeError) {
    let waiting = try using { () throws(AuthenticatorFault) in try authenticator.waitingRecords(of: user) }
    guard waiting.contains(where: { $0.isOf(device) }) else { return }
    let challenge = try using { () throws(AuthenticatorFault) in
      var random = SystemRandom()
      return try DeviceChallenge(random: &random)
    }
    let result: [UInt8]
    do throws(UserExchangeError) {
      (_, result) = try inquiry.ask(UserCommandName.hostCode, [user, challenge.digits])
    } catch {
      // The policy may not allow the command.
      guard case .notAccepted = error else { throw error }
      return
    }
    guard let answer = HostAnswer(result) else { return }
    try using { () throws(AuthenticatorFault) in
      guard
        try authenticator.isOfWaitingRecords(
          answer.code, user: user, device: device, challenge: challenge, deviceChallenge: answer.challenge)
      else { return }
      try authenticator.completeReplacement(of: user, deviceID: device)
    }
  }

  private func proveHost(
    _ record: Record, by inquiry: DeviceInquiry, in authenticator: Authenticator
  ) throws(UserExchangeError) -> DeviceChallenge? {
    let challenge = try using { () throws(AuthenticatorFault) in
      var random = SystemRandom()
      return try authenticator.challengeDevice(record, random: &random)
    }
    let (_, result) = try inquiry.ask(UserCommandName.hostCode, [record.user, challenge.digits])
    guard let answer = HostAnswer(result) else { return nil }
    do throws(AuthenticatorFault) {
      let isRight = try authenticator.checkHostCode(answer.code, deviceChallenge: answer.challenge, of: record)
      return isRight ? answer.challenge : nil
    } catch {
      // A device can send any text, even one that is not a code; it counts as a wrong answer.
      guard error == .badQuestion else { throw .authenticator(error) }
      return nil
    }
  }

  private func onlyUser(of authenticator: Authenticator) throws(UserExchangeError) -> String {
    try using { () throws(AuthenticatorFault) in
      let all = try authenticator.records()
      guard let first = all.first else { throw .noRecords }
      guard all.allSatisfy({ $0.user.utf8.elementsEqual(first.user.utf8) }) else { throw .severalUsers }
      return first.user
    }
  }
}

/// The result of a synchronisation.
public struct SynchronisedUser: Sendable, Hashable {
  /// The name of the user.
  public let user: String
  /// The id of the device.
  public let device: DeviceID
  /// The difference of the device's clock from this one, in seconds; positive if it is ahead.
  public let clockOffsetSeconds: Int64
  /// The first counter or time step that the device accepts in a one-time password; nil if the user has none.
  public let otpNext: UInt64?
  /// The first counter or time step that the device accepts in a seal; nil if the user has none.
  public let sealNext: UInt64?
}

/// A device's answer to `user-state`: whether it has locked a user out.
public struct UserLockState: Sendable, Hashable {
  /// The number of rejected codes.
  public let failureCount: UInt64
  /// The time until the device looks at codes again, in seconds; 0 if the user is not locked out.
  public let lockedSeconds: UInt64

  /// Parses `[failures, seconds]`.
  ///
  /// - Throws: `unknownUser` for an empty answer, `malformedAnswer` for any other.
  package init(_ result: [UInt8]) throws(UserExchangeError) {
    guard !result.isEmpty else { throw .unknownUser }
    do throws(EncodingFault) {
      var reader = CBORReader(result.span)
      try reader.array(of: 2)
      failureCount = try reader.unsigned()
      lockedSeconds = try reader.unsigned()
      try reader.finish()
    } catch { throw .malformedAnswer }
  }
}

/// A command that asks a device for a value: the app proves itself, and the sealed result is the answer.
struct DeviceInquiry {
  let prover: Prover
  let address: DeviceAddress
  var options: ProofOptions

  init(_ prover: Prover, _ address: DeviceAddress, _ options: ProofOptions) {
    (self.prover, self.address, self.options) = (prover, address, options)
  }

  /// Returns the devices that may answer.
  func devices() throws(UserExchangeError) -> [DeviceID] {
    if let expected = options.device { return [expected] }
    do throws(StateFolderFault) {
      let entries = try prover.folder.entries()
      guard !entries.isEmpty else { throw try prover.folder.nothingEnrolled() }
      return entries.map { $0.device }
    } catch { throw .exchange(.state(error)) }
  }

  /// Returns the result of the command, which the device must accept, and the device that sent it.
  func ask(
    _ command: BoundedText<32>, _ parameters: [String]
  ) throws(UserExchangeError) -> (device: DeviceID, result: [UInt8]) {
    var request = Request(command: command)
    for text in parameters {
      guard let parameter = BoundedText<64>(text) else { throw .authenticator(.badUser) }
      do throws(EncodingFault) { try request.append(parameter: parameter) } catch { throw .authenticator(.badUser) }
    }
    let outcome: ProofOutcome
    do throws(ProverError) {
      outcome =
        switch address {
        case .endpoint(let endpoint): try prover.prove(request, at: endpoint, options: options)
        case .channel(let channel): try prover.prove(request, over: channel, options: options)
        }
    } catch { throw .exchange(error) }
    // The answer to the first attempt of a repeated request is lost, and that to the repetition has no result.
    guard outcome.verdict.status == .accepted, !outcome.verdict.isRepetition, let enrolment = outcome.enrolment else {
      throw .notAccepted(outcome)
    }
    return (enrolment.descriptor.deviceID, outcome.result)
  }
}

/// A device's answer to `user-sync`: `[time, otp, seal]`.
package struct UserPositions {
  /// The time that the device expects of the user's clock, in Unix seconds.
  package let time: UInt64
  /// The first position of a one-time password that the device would accept; nil if the user gives none.
  package let otp: UInt64?
  /// The first position of a seal that the device would accept; nil if the user gives none.
  package let seal: UInt64?

  /// Parses the answer; nil if the device does not know the user.
  ///
  /// - Throws: `malformedAnswer`.
  package init?(_ result: [UInt8]) throws(UserExchangeError) {
    guard !result.isEmpty else { return nil }
    do throws(EncodingFault) {
      var reader = CBORReader(result.span)
      try reader.array(of: 3)
      time = try reader.unsigned()
      otp = reader.null() ? nil : try reader.unsigned()
      seal = reader.null() ? nil : try reader.unsigned()
      try reader.finish()
    } catch { throw .malformedAnswer }
  }
}

/// A device's answer to `host-code`: its challenge and the host code, as two words. It is empty if the device does not know the
/// user.
package struct HostAnswer {
  /// The device's challenge.
  package let challenge: DeviceChallenge
  /// The host code, which may be any text.
  package let code: String

  /// Parses the answer; nil for anything but two words, of which the first is a challenge.
  package init?(_ result: [UInt8]) {
    let words = result.split(separator: 0x20, omittingEmptySubsequences: false)
    guard words.count == 2, let challenge = DeviceChallenge(String(decoding: words[0], as: UTF8.self)) else {
      return nil
    }
    self.challenge = challenge
    code = String(decoding: words[1], as: UTF8.self)
  }
}
