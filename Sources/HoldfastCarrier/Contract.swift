import HoldfastCore
import HoldfastFormats
import HoldfastOnline

// The carrier's half of the contract with the prover: it parses what the prover writes, and writes what the prover parses. The
// other half is in HoldfastOnline, because every byte of a prover is hashed for each proof.

/// The task of a carrier, as the prover sent it.
package struct CarrierTask: Sendable {
  /// The services in the order in which they are tried.
  package var services: [PinnedService]
  /// The certificate authorities that count.
  package let authorities: TrustedAuthorities
  /// The time for the whole task, in seconds.
  package var timeoutSeconds: UInt64
  /// The request to the services.
  package var work: CarrierWork

  /// The maximum byte count of a task.
  static let maximumByteCount = 262_144
  private static let names = ["version", "services", "ca", "system", "timeout"]

  /// Parses a task; nil for anything but strict JSON with exactly these members.
  package init?(_ bytes: [UInt8]) {
    guard let value = try? JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount), let members = value.members,
      value["version"]?.number == 1, let elements = value["services"]?.elements,
      (1...ServiceAddress.countLimit).contains(elements.count), let timeout = value["timeout"]?.number,
      CarrierTaskLine.timeoutRange.contains(timeout), value["ca"] == nil || value["ca"]?.text != nil,
      value["system"] == nil || value["system"] == .bool(true) && value["ca"] != nil
    else { return nil }
    authorities = TrustedAuthorities(file: value["ca"]?.text, hasSystem: value["system"] != nil)
    let services = elements.compactMap { Self.service($0) }
    let rest = JSONValue.object(members.filter { member in !Self.names.contains { haveSameBytes($0, member.0) } })
    guard services.count == elements.count, let work = CarrierWork(rest) else { return nil }
    (self.services, timeoutSeconds, self.work) = (services, timeout, work)
  }

  private static func service(_ value: JSONValue) -> PinnedService? {
    guard value.hasOnly(["url", "pins"]), let url = value["url"]?.text, let address = try? ServiceAddress(url),
      let texts = value["pins"]?.elements, texts.count <= ServicePin.countLimit
    else { return nil }
    let pins = texts.compactMap { $0.text.flatMap { ServicePin($0) } }
    return pins.count == texts.count ? PinnedService(address, pins: pins) : nil
  }
}

/// The certificate authorities that count for services.
package struct TrustedAuthorities: Sendable, Equatable {
  /// A file with authorities in PEM; nil for none. It may have intermediate ones, too.
  package let file: String?
  /// Whether those of this host's system count.
  package let hasSystem: Bool

  /// Trusts the authorities of a file, with those of the system or alone.
  package init(file: String?, hasSystem: Bool) { (self.file, self.hasSystem) = (file, hasSystem || file == nil) }

  /// The file whose authorities are the only ones; nil if those of the system count.
  package var only: String? { hasSystem ? nil : file }
  /// The file whose authorities count in addition to those of the system; nil if there is none.
  package var added: String? { hasSystem ? file : nil }
}

/// The kinds of request that a carrier makes to services.
package enum CarrierWork: Sendable {
  /// Evidence is exchanged for a measurement token, which may take an operator's decision.
  case enrolment(EnrolmentWork)
  /// One request is answered at once.
  case call(ServiceCall)

  /// Parses the members of a task that only this work has; nil for others.
  init?(_ value: JSONValue) {
    guard let operation = value["operation"] else {
      guard let enrolment = EnrolmentWork(value) else { return nil }
      self = .enrolment(enrolment)
      return
    }
    let query = value["query"].map { $0.elements?.compactMap(\.text) } ?? []
    guard value.hasOnly(["operation", "attempts", "body", "query"]), let query,
      query.count == value["query"]?.elements?.count ?? 0,
      let operation = operation.text.flatMap(ServiceOperation.init(rawValue:)), let count = value["attempts"]?.number,
      let call = ServiceCall(operation, body: value["body"], values: query, attemptCount: count)
    else { return nil }
    self = .call(call)
  }
}

/// An enrolment for one device.
package struct EnrolmentWork: Sendable {
  /// The evidence in padded base64. Anyone who reads it knows the measurements.
  package let evidence: String
  /// The descriptor of the device.
  package let device: JSONValue
  /// The secret code of an invitation; nil for none.
  package let invitation: String?
  /// The wishes for the token.
  package var wishes: TokenWishes
  /// The request that waits already; nil for none.
  package var request: OnlineRequest?
  /// The attempts if services do not answer.
  package let attempts: AttemptRule

  private static let maximumEvidenceByteCount = 131_072
  private static let names = [
    "evidence", "device", "invitation", "format", "user", "commands", "request", "retries", "pause",
  ]

  init?(_ value: JSONValue) {
    guard value.hasOnly(Self.names), let evidence = value["evidence"]?.text,
      (1...Self.maximumEvidenceByteCount).contains(evidence.utf8.count), let device = value["device"],
      device.members != nil, value["retries"] == nil || value["retries"]?.number != nil,
      value["pause"] == nil || value["pause"]?.number != nil,
      let attempts = AttemptRule(retryCount: value["retries"]?.number, pauseSeconds: value["pause"]?.number)
    else { return nil }
    self.attempts = attempts
    (self.evidence, self.device, invitation) = (evidence, device, value["invitation"]?.text)
    wishes = TokenWishes(
      format: value["format"]?.text, user: value["user"]?.text,
      commands: value["commands"]?.elements?.compactMap(\.text))
    request = value["request"].flatMap { Self.request($0) }
    guard value["invitation"] == nil || invitation != nil,
      value["format"] == nil || wishes.format != nil, value["user"] == nil || wishes.user != nil,
      value["commands"]?.elements?.count == wishes.commands?.count, value["commands"] == nil || wishes.commands != nil,
      value["request"] == nil || request != nil
    else { return nil }
  }

  private static func request(_ value: JSONValue) -> OnlineRequest? {
    guard value.hasOnly(["id", "service"]), let id = value["id"]?.text, let service = value["service"]?.text,
      let address = try? ServiceAddress(service)
    else { return nil }
    return OnlineRequest(id: id, service: address)
  }
}

extension CarrierReport {
  /// The report as a line of JSON, with its newline.
  package var line: [UInt8] {
    let value: JSONValue =
      switch self {
      case .progress(.attesting(let service)): Self.step("attesting", service, [])
      case .progress(.asking(let service)): Self.step("asking", service, [])
      case .progress(.waiting(let request, let seconds)):
        Self.step("waiting", request.service, [("request", .string(request.id)), ("seconds", .integer(seconds))])
      case .progress(.failed(let failure)): .object([("progress", .string("failed")), ("failure", failure.json)])
      case .result(.token(let token)):
        .object(
          [
            ("result", .string("token")), ("service", .string(token.service.description)),
            ("token", .string(paddedBase64(token.bytes))), ("format", .string(token.format)),
            ("claims", token.claims),
          ] + (token.terms.map { [("terms", .string($0))] } ?? []))
      case .result(.answer(let answer)):
        .object([
          ("result", .string("answer")), ("service", .string(answer.service.description)), ("answer", answer.value),
        ])
      case .result(.waiting(let request)):
        .object([
          ("result", .string("waiting")), ("service", .string(request.service.description)),
          ("request", .string(request.id)),
        ])
      case .result(.failure(let failure)): failure.json
      }
    return value.compact() + [0x0a]
  }

  private static func step(_ name: String, _ service: ServiceAddress, _ more: [(String, JSONValue)]) -> JSONValue {
    .object([("progress", .string(name)), ("service", .string(service.description))] + more)
  }
}

extension CarrierFailure {
  /// The failure as the result of a carrier.
  var json: JSONValue {
    func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
    return .object([
      ("result", .string("failure")), ("kind", .string(kind.rawValue)), ("service", text(service)),
      ("status", status.map { .integer($0) } ?? .null), ("title", text(title)), ("detail", text(detail)),
      ("reasons", .array(reasons.map { .string($0) })), ("arc", text(responseCode)), ("request_id", text(requestID)),
      ("help", text(help)),
    ])
  }
}
