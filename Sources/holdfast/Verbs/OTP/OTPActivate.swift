import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastProver
import HoldfastTransport

struct OTPActivate: Verb {
  static let configuration = CommandConfiguration(
    commandName: "activate", abstract: "Become a user of a device, with the code that its owner gave you.",
    discussion: """
      The device's owner gets the code from holdfast device user add NAME. Afterwards the device and the authenticator share \
      fresh secrets that nobody else has seen.
      """,
    examples: [
      "holdfast otp activate --connect unix:/run/lock.sock --authenticator keys",
      """
      holdfast otp activate --connect unix:/run/lock.sock --authenticator keys \\
      --code code.txt --new-pin-file pin.txt
      """,
    ])

  @Option(help: "The device's endpoint, such as unix:/run/lock.sock.")
  var connect: String

  @OptionGroup var code: OwnersCodeOptions
  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var new: NewProtectionOptions
  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Replace existing records of the same user.")
  var replace = false

  mutating func perform() throws(Failure) {
    let endpoint = try Endpoint(peerArgument: connect)
    let timeoutMilliseconds = try waiting.milliseconds()
    let ownersCode = try code.read()
    let folder = try authenticator.create()
    let protection = try new.secret()
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    let session = ActivationSession(
      code: ownersCode, for: .activation, cryptography: OpenSSLCryptography(), random: SystemRandom())
    let exchange = ActivationExchange(at: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    var activated: (user: String, deviceID: DeviceID)?
    var refusal: Failure?
    do throws(ProverError) {
      _ = try exchange.run(session) { session in
        do throws(Failure) { activated = try store(session, in: folder, protection) } catch { refusal = error }
        return refusal == nil
      }
    } catch {
      let error = Failure(error, endpoint: endpoint)
      guard let activated else { throw error }
      throw Failure(
        error.status, "\(error.message); it is unknown whether the device has added \(activated.user)",
        hint: "find out with holdfast otp sync, or activate again with a new code")
    }
    if let refusal { throw refusal }
    guard let activated else { throw Failure(.malformed, "the device granted nothing") }
    try authenticator.using { () throws(AuthenticatorFault) in try folder.confirmActivation(user: activated.user) }
    report(activated.user, activated.deviceID)
  }

  private func store(
    _ session: borrowing ActivationExchange.Session, in folder: Authenticator, _ protection: borrowing ProtectionSecret
  ) throws(Failure) -> (user: String, deviceID: DeviceID) {
    guard let grant = session.grant else { throw Failure(.malformed, "the device granted nothing") }
    let user = grant.user.description
    let deviceID = session.deviceID
    let records = session.withSecrets { secrets in grant.records(secrets, user: user, deviceID: deviceID) } ?? []
    // The time is taken before blinding, which is slow, because the device's time is that of its answer.
    let now = SystemClock().unixSeconds() ?? 0
    var random = SystemRandom()
    do throws(AuthenticatorFault) {
      try folder.add(records, protection: protection, isConfirmed: false, replacing: replace, random: &random)
    } catch {
      guard error == .exists else { throw Failure(error, folder: authenticator.authenticator) }
      throw Failure(
        .denied, "there are already records of \(user), for this device or another; the code is still valid",
        hint: "use another --authenticator folder, or --replace to discard those records")
    }
    let offset = Int64(clamping: grant.time) - Int64(clamping: now)
    try authenticator.using { () throws(AuthenticatorFault) in
      try folder.synchronise(
        user: user, offsetSeconds: offset.magnitude <= UInt64(UInt32.max) ? offset : nil, otpNext: nil, sealNext: nil,
        now: now)
    }
    return (user, deviceID)
  }

  private func report(_ user: String, _ deviceID: DeviceID) {
    if output.json {
      Console.result(
        .object([
          ("user", .string(user)), ("device_id", .string(hexadecimal(deviceID))), ("state", .string("activated")),
        ]))
    } else {
      Console.result("\(user): activated on device \(hexadecimal(deviceID))")
    }
  }
}

extension ActivationGrant {
  /// Creates the records for a user with these secrets.
  fileprivate func records(
    _ secrets: borrowing UserSecrets, user: String, deviceID: DeviceID
  ) -> [NewRecord] {
    var records: [NewRecord] = []
    let limit = sealParameterLength == 16 ? nil : Int(sealParameterLength)
    if let otp = methods[.otp] {
      records.append(
        NewRecord(
          index: Int(CodePurpose.otp.rawValue), purpose: .otp,
          credential: Credential(user: user, method: otp, secret: SecretBytes(copying: secrets.otp)),
          deviceID: deviceID,
          lookAheadWindow: CodeLimits().counterLookAhead))
    }
    if let seal = methods[.seal] {
      records.append(
        NewRecord(
          index: Int(CodePurpose.seal.rawValue), purpose: .seal,
          credential: Credential(user: user, method: seal, secret: SecretBytes(copying: secrets.seal)),
          deviceID: deviceID, lookAheadWindow: CodeLimits().counterLookAhead, sealFieldByteLimit: limit))
    }
    records.append(
      NewRecord(
        index: Int(CodePurpose.host.rawValue), purpose: .host,
        credential: Credential(
          user: user, method: .ocra(.host), secret: SecretBytes(copying: secrets.host)),
        deviceID: deviceID))
    return records
  }
}

extension SecretBytes {
  fileprivate init(copying secret: borrowing Secret<32>) {
    self = secret.withBytes { SecretBytes(copying: $0) }
  }
}
