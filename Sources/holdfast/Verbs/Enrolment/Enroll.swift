import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastOnline
import HoldfastProver

struct Enroll: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Enrol for one or more devices: measure, attest and issue in one step.",
    discussion: """
      App and host are measured once, but each device gets a separate fresh baseline. If a device cannot be enrolled, the \
      command reports it and enrols the others. An enrolment that is being replaced stays valid until the new one is \
      complete. The separate steps are measure, attest and issue.

      An online service is named by its URL, or by several with commas between them, which are tried in that order. If its \
      operator has to decide first, the command waits for the decision until --timeout. The same command continues an \
      enrolment that still waits or was interrupted. Of the token's options, only --format, --user and --allow are sent; the \
      service decides the others. The program holdfast-carrier makes the connection. The URLs, the pins, --ca, --timeout, \
      --retries and --pause of an enrolment that succeeded are kept in the state folder (services.json) for commands that name \
      no service.
      """,
    examples: [
      "holdfast enroll --device lock.json --service service --state phone",
      """
      holdfast enroll --device lock.json --service service --state phone \\
      --allow unlock --allow lock --maximum-uses 100 --valid-for 86400
      """,
      "holdfast enroll --device front.json --device back.json \\\n--service service --state phone",
      "holdfast enroll --device lock.json --service service --state phone \\\n--replace",
      """
      holdfast enroll --device lock.json --state phone \\
      --service https://a.example,https://b.example --invitation code.txt
      """,
      "holdfast enroll --device lock.json --state phone --replace",
    ])

  @Option(help: "A device's descriptor, as device show --json prints it; may be repeated.", completion: .file())
  var device: [String]

  @Option(
    help:
      "The service's folder; or one to eight URLs with commas between them. An invitation's QR code names it too. By default, the URLs of the last enrolment.",
    completion: .directory)
  var service: String?

  @Option(help: "The prover's state folder, which is created if necessary.", completion: .directory)
  var state: String

  @Flag(help: "Replace existing enrolments for these devices.")
  var replace = false

  @OptionGroup var app: AppOptions
  @OptionGroup var posture: PostureOptions
  @OptionGroup var measuring: MeasuringOptions
  @OptionGroup var token: TokenOptions
  @OptionGroup var online: OnlineOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    let enrolment = try readOnlineService()
    let options = try enrolment == nil ? token.options() : nil
    let descriptors = try readDescriptors()
    var attempts: [Attempt] = []
    try reading(state) { (prover) throws(ProverError) in try prover.checkKind() }
    for descriptor in descriptors {
      var attempt = Attempt(descriptor: descriptor)
      if !replace {
        attempt.run { () throws(Failure) in
          try reading(state) { (prover) throws(ProverError) in try prover.checkIsNew(descriptor.deviceID) }
        }
      }
      attempts.append(attempt)
    }
    if attempts.contains(where: { $0.failure == nil }) {
      if let enrolment {
        try enroll(&attempts, enrolment)
        exchangeMail(for: attempts, with: .online(enrolment.services, timeoutSeconds: Self.mailSeconds))
      } else if let service, let options {
        try enroll(&attempts, ServiceClient(path: service), options)
        exchangeMail(for: attempts, with: .folder(service))
      }
    }
    try report(attempts)
  }

  /// The seconds to wait for mail, without which the enrolment counts all the same.
  private static let mailSeconds: UInt64 = 5

  private func exchangeMail(for attempts: [Attempt], with source: MailSource) {
    for attempt in attempts where attempt.token != nil {
      let device = attempt.descriptor.deviceID
      do throws(Failure) {
        _ = try source.fetch(for: device, state: state)
        _ = try source.handInPages(of: device, state: state)
      } catch {
        return Console.note("not all mail was exchanged: \(error.message)")
      }
    }
  }

  /// Reads all options about an online service before any measurement; returns nil for a service in a folder.
  private func readOnlineService() throws(Failure) -> OnlineEnrolment? {
    guard
      let services = try online.services(
        service, in: ProverFolder(path: state), isInputTaken: device.contains("-"))
    else { return nil }
    let (claims, wishes) = (try app.claims(), try token.wishes())
    return OnlineEnrolment(
      state: state, services: services, carrier: try CarrierProcess.path(), claims: claims, wishes: wishes,
      posture: posture, measuring: measuring, isReplacing: replace)
  }

  /// Reads all descriptors before any measurement. No device may be named twice.
  private func readDescriptors() throws(Failure) -> [DeviceDescriptor] {
    guard device.count <= ProverFolder.deviceLimit else { throw Failure(.usage, "too many devices are named") }
    guard device.filter({ $0 == "-" }).count < 2 else {
      throw Failure(.usage, "standard input provides only one descriptor, but is named twice")
    }
    var descriptors: [DeviceDescriptor] = []
    var seen: Set<DeviceID> = []
    for path in device {
      let descriptor = try DeviceDescriptor(file: path)
      guard seen.insert(descriptor.deviceID).inserted else {
        throw Failure(.usage, "device \(hexadecimal(descriptor.deviceID)) is named twice")
      }
      descriptors.append(descriptor)
    }
    return descriptors
  }

  /// Enrols at a service in a folder.
  private func enroll(
    _ attempts: inout [Attempt], _ client: ServiceClient, _ options: IssuanceOptions
  ) throws(Failure) {
    let claims = try app.claims()
    let baselines = try writing(state) { (prover) throws(ProverError) in
      try prover.with(posture, measuring).takeBaselines(attempts.count, as: claims)
    }
    baselines.first?.measurement.warnOfWeakHost()
    for index in attempts.indices where attempts[index].failure == nil {
      let (descriptor, baseline) = (attempts[index].descriptor, baselines[index])
      attempts[index].restsOnDeviceSecretAlone = baseline.measurement.restsOnDeviceSecretAlone
      attempts[index].token = attempts[index].run { () throws(Failure) in
        let attestation = try client.attest(baseline.evidence, for: descriptor)
        let token = try client.issue(attestation, for: descriptor, options: options)
        try writing(state) { (prover) throws(ProverError) in
          try prover.store(token, of: baseline, for: descriptor, replacing: replace)
        }
        return token
      }
    }
  }

  /// Enrols at an online service.
  private func enroll(_ attempts: inout [Attempt], _ enrolment: OnlineEnrolment) throws(Failure) {
    let measurement = try writing(state) { (prover) throws(ProverError) in try prover.with(posture, measuring).measure()
    }
    measurement.warnOfWeakHost()
    for index in attempts.indices where attempts[index].failure == nil {
      let descriptor = attempts[index].descriptor
      attempts[index].restsOnDeviceSecretAlone = measurement.restsOnDeviceSecretAlone
      var details: [(String, JSONValue)] = []
      attempts[index].token = attempts[index].run { () throws(Failure) in
        try enrolment.enroll(descriptor, measurement, details: &details)
      }
      attempts[index].details = details
    }
  }

  /// Reports the attempts. The failure of a single device is that of the verb; with several devices, each failure is
  /// reported separately.
  private func report(_ attempts: [Attempt]) throws(Failure) {
    if attempts.count == 1, let failure = attempts[0].failure {
      guard output.json, !attempts[0].details.isEmpty else { throw failure }
      Console.result(.object((failure.json.members ?? []) + attempts[0].details))
      throw failure.afterResult()
    }
    for attempt in attempts {
      if let failure = attempt.failure {
        let name = "device \(hexadecimal(attempt.descriptor.deviceID))"
        // Some messages already begin with the device.
        Console.report(failure, of: failure.message.hasPrefix("\(name) ") ? nil : name)
      } else if !output.json, let text = attempt.text {
        Console.result(text)
      }
    }
    if output.json {
      Console.result(attempts.count == 1 ? attempts[0].json : .object([("devices", .array(attempts.map(\.json)))]))
    }
    let failures = attempts.compactMap(\.failure)
    guard let first = failures.first else { return }
    throw Failure(
      first.status,
      "\(failures.count) of \(attempts.count) devices \(failures.count == 1 ? "was" : "were") not enrolled"
    ).afterResult()
  }
}

/// The enrolment for one device: in progress, completed or failed.
private struct Attempt {
  let descriptor: DeviceDescriptor
  var restsOnDeviceSecretAlone = false
  var token: MeasurementToken?
  /// The facts about a failure that a program needs, as members of an object.
  var details: [(String, JSONValue)] = []
  private(set) var failure: Failure?

  init(descriptor: DeviceDescriptor) { self.descriptor = descriptor }

  @discardableResult
  mutating func run<Result>(_ step: () throws(Failure) -> Result) -> Result? {
    do throws(Failure) { return try step() } catch {
      failure = error
      return nil
    }
  }

  var text: String? {
    token.map { token in
      "enrolled for device \(hexadecimal(descriptor.deviceID)): a token of \(token.bytes.count) bytes"
        + (token.report.map { ", until \(Timestamp(unixSeconds: $0.expires))" } ?? "")
    }
  }

  var json: JSONValue {
    var members: [(String, JSONValue)] = [("device_id", .string(hexadecimal(descriptor.deviceID)))]
    if let token {
      members += [
        ("enrolled", .bool(true)), ("token_bytes", .integer(UInt64(token.bytes.count))),
        ("expires", token.report.map { .integer($0.expires) } ?? .null),
        ("rests_on_device_secret_alone", .bool(restsOnDeviceSecretAlone)), ("token", token.report?.json ?? .null),
      ]
    }
    if let failure {
      members += [
        ("enrolled", .bool(false)), ("error", .string(failure.message)),
        ("exit", .integer(UInt64(failure.status.rawValue))), ("code", .string(failure.code.row.identifier)),
        ("number", .integer(UInt64(failure.code.rawValue))),
      ]
      members += details
    }
    return .object(members)
  }
}

extension DeviceDescriptor {
  /// Reads a descriptor from a file; `-` is standard input.
  init(file path: String) throws(Failure) {
    let bytes = try Input.read(path, limit: 8192)
    do throws(KeyFault) { try self.init(json: bytes) } catch {
      guard error != .unexpected else {
        throw Failure(
          .malformed, "\(path) is not a device descriptor", hint: "holdfast device show --json prints one")
      }
      throw Failure(error, path: path)
    }
  }
}
