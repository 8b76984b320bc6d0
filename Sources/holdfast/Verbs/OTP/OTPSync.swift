import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastProver
import HoldfastTransport

struct OTPSync: Verb {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Synchronise with the device's time and counters, which it sends in a sealed verdict.",
    discussion: "The host first proves itself to the device, with the enrolment in --state.",
    examples: [
      """
      holdfast otp sync --connect unix:/run/lock.sock --state phone \\
      --authenticator keys
      """
    ])

  @Option(help: "The device's endpoint, such as unix:/run/lock.sock.")
  var connect: String

  @OptionGroup var enrolled: StateOptions

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The user of the records; optional if there is only one user.")
  var user: String?

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    var inquiry = try DeviceInquiry(
      at: connect, state: enrolled.state, device: enrolled.device, waiting: waiting, pairing: pairing)
    let folder = try authenticator.open()
    let user = if let user { user } else { try onlyUser(in: folder) }
    // If the user is activated on only one of several enrolled devices, that one must answer.
    let known = Set(try records(of: user, on: inquiry.devices(), in: folder).map { $0.device })
    if known.count == 1 { inquiry.expected = known.first }
    let (deviceID, answer) = try inquiry.ask(UserCommandName.synchronise, [user])
    let own = try records(of: user, on: [deviceID], in: folder).map { $0.record }
    guard let said = try Synchronisation(answer) else {
      throw Failure(.denied, "the device does not know the user", hint: "holdfast otp activate")
    }
    inquiry.expected = deviceID
    try confirm(own, of: user, on: deviceID, by: inquiry, in: folder)
    try takeOver(said, of: user, on: deviceID, in: folder)
  }

  /// Returns the user's records to which the values of one of these devices apply.
  private func records(
    of user: String, on devices: [DeviceID], in folder: Authenticator
  ) throws(Failure) -> [(device: DeviceID, record: Record)] {
    let all = try authenticator.using { () throws(AuthenticatorFault) in try folder.records(user: user) }
    guard !all.isEmpty else { throw Failure(AuthenticatorFault.unknownRecord, folder: authenticator.authenticator) }
    let own = devices.flatMap { device in all.filter { $0.isOf(device) }.map { (device: device, record: $0) } }
    guard !own.isEmpty else {
      throw Failure(
        .denied, "the user's records belong to another device",
        hint: "holdfast otp list --json shows which device; for this one, activate into a separate folder")
    }
    return own
  }

  /// Completes an activation whose end was lost. Only the device's host code shows whether it accepted the activation;
  /// the fact that it knows a user with the name does not.
  private func confirm(
    _ records: [Record], of user: String, on deviceID: DeviceID, by inquiry: DeviceInquiry, in folder: Authenticator
  ) throws(Failure) {
    let open = records.filter { !$0.isConfirmed }
    guard !open.isEmpty else { return }
    guard let host = open.first(where: { $0.purpose == .host }),
      try inquiry.proveHost(host, in: folder, authenticator) != nil
    else {
      throw Failure(
        .denied, "the device did not complete the last activation",
        hint:
          "activate again with a new code from holdfast device user add, with --replace if there is a user with that name"
      )
    }
    try authenticator.using { () throws(AuthenticatorFault) in
      try folder.confirmActivation(user: user, deviceID: deviceID)
    }
  }

  private func onlyUser(in folder: Authenticator) throws(Failure) -> String {
    let all = try authenticator.using { () throws(AuthenticatorFault) in try folder.records() }
    guard let first = all.first else {
      throw Failure(AuthenticatorFault.noRecords, folder: authenticator.authenticator)
    }
    guard all.allSatisfy({ $0.user.utf8.elementsEqual(first.user.utf8) }) else {
      throw Failure(AuthenticatorFault.severalUsers, folder: authenticator.authenticator)
    }
    return first.user
  }

  private func takeOver(
    _ said: Synchronisation, of user: String, on deviceID: DeviceID, in folder: Authenticator
  ) throws(Failure) {
    guard let now = SystemClock().unixSeconds(), let seconds = Int64(exactly: said.time), let own = Int64(exactly: now)
    else { throw Failure(.fault, "the clock is before 1970 or after 2106") }
    let offset = seconds - own
    try authenticator.using { () throws(AuthenticatorFault) in
      try folder.synchronise(
        user: user, deviceID: deviceID, offsetSeconds: offset, otpNext: said.otpNext, sealNext: said.sealNext, now: now)
    }
    if output.json {
      Console.result(
        .object([
          ("user", .string(user)), ("clock_ahead_seconds", .integer(offset > 0 ? offset.magnitude : 0)),
          ("clock_behind_seconds", .integer(offset < 0 ? offset.magnitude : 0)),
          ("otp_next", said.otpNext.map { .integer($0) } ?? .null),
          ("seal_next", said.sealNext.map { .integer($0) } ?? .null),
        ]))
    } else {
      let drift =
        offset == 0
        ? "the device agrees with this clock"
        : "the device is \(offset.magnitude) s \(offset > 0 ? "ahead of" : "behind") this clock"
      Console.result("\(user): synchronised, \(drift)")
    }
  }
}

/// A device's answer to `user-sync`: `[time, otp, seal]`.
private struct Synchronisation {
  /// The time that the device expects of the user's clock, in Unix seconds.
  let time: UInt64
  /// The first positions that the device would accept.
  let otpNext: UInt64?
  let sealNext: UInt64?

  /// Parses the answer; nil if the device does not know the user.
  init?(_ result: [UInt8]) throws(Failure) {
    guard !result.isEmpty else { return nil }
    do throws(EncodingFault) {
      var reader = CBORReader(result.span)
      try reader.array(of: 3)
      time = try reader.unsigned()
      otpNext = reader.null() ? nil : try reader.unsigned()
      sealNext = reader.null() ? nil : try reader.unsigned()
      try reader.finish()
    } catch { throw Failure(.malformed, "the device's answer does not follow this protocol") }
  }
}

struct OTPUnlock: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Unlock yourself at a device that has locked you out, with a code from its owner.",
    discussion: "The device's owner gets the code from holdfast device user unlock NAME.",
    examples: [
      "holdfast otp unlock --connect unix:/run/lock.sock",
      "holdfast otp unlock --connect unix:/run/lock.sock --code code.txt",
    ])

  @Option(help: "The device's endpoint, such as unix:/run/lock.sock.")
  var connect: String

  @OptionGroup var code: OwnersCodeOptions
  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let endpoint = try Endpoint(peerArgument: connect)
    let timeoutMilliseconds = try waiting.milliseconds()
    let ownersCode = try code.read()
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    let session = ActivationSession(
      code: ownersCode, for: .unlock, cryptography: OpenSSLCryptography(), random: SystemRandom())
    let exchange = ActivationExchange(at: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    let isUnlocked: Bool
    // An unlocking has nothing to store.
    do throws(ProverError) { isUnlocked = try exchange.run(session) { _ in false } } catch {
      throw Failure(error, endpoint: endpoint)
    }
    guard isUnlocked else { throw Failure(.malformed, "the other end does not speak this protocol") }
    if output.json {
      Console.result(.object([("state", .string("unlocked"))]))
    } else {
      Console.result("unlocked")
    }
  }
}
