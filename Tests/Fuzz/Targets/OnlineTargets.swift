import HoldfastCarrier
import HoldfastCore
import HoldfastFormats
import HoldfastOnline
import HoldfastProver
import HoldfastSDK

/// The readers of what travels between a prover, its carrier and services.
let onlineTargets = [
  FuzzTarget(
    "service-address",
    [
      "HoldfastOnline/ServiceAddress.swift", "HoldfastOnline/ServicePin.swift", "HoldfastOnline/Invitation.swift",
    ], maximumByteCount: 512
  ) { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    if let address = attempt({ try ServiceAddress(text) }) {
      note(address.description)
      try require((try? ServiceAddress(address.description)) == address, "the address of a service differs")
    }
    let list = attempt { try ServiceAddress.list(text) }
    note("\(list?.map(\.description) ?? [])")
    let pin = ServicePin(text)
    if let pin {
      note(pin.digest)
      try require(pin.digest.count == 32, "a pin has another length")
    }
    if list != nil || pin != nil { return }
    let invitation = try Invitation(bytes.span)
    let written = Array(invitation.text.utf8)
    note(written)
    let again = try mustSucceed("an invitation that was written is refused") { try Invitation(written.span) }
    try require(again.text == invitation.text, "an invitation that is written and read again differs")
  },
  FuzzTarget("known-services", ["HoldfastOnline/KnownServices.swift"]) { bytes in
    let services = try KnownServices(bytes)
    let text = services.encoded
    note(text)
    let again = try mustSucceed("services.json that was written is refused") { try KnownServices(text) }
    try require(again.encoded == text, "services.json that is written and read again differs")
  },
  FuzzTarget(
    "carrier-report", ["HoldfastOnline/CarrierReport.swift", "HoldfastOnline/CarrierFailure.swift"]
  ) { bytes in
    guard let report = CarrierReport(bytes) else { return }
    let line = report.line
    note(line)
    guard let again = CarrierReport(line) else { throw Violation(description: "a report that was written is refused") }
    try require(again.line == line, "a report that is written and read again differs")
  },
  FuzzTarget("carrier-task", ["HoldfastCarrier/Contract.swift", "HoldfastOnline/CarrierTask.swift"]) { bytes in
    guard let task = CarrierTask(bytes) else { return note("no task") }
    note("\(task)")
    if case .enrolment(let enrolment) = task.work, let request = enrolment.request {
      note("\(request.id) \(request.service.description)")
    }
    try require((1...ServiceAddress.countLimit).contains(task.services.count), "a task has no services")
  },
  FuzzTarget("service-answer", ["HoldfastCarrier/ServiceAnswers.swift"]) { bytes in
    guard let first = bytes.first else { return }
    let service = try ServiceAddress("https://fuzz.example")
    let id = String(repeating: "0", count: 32)
    guard let request = OnlineRequest(id: id, service: service) else { return }
    let types = ["application/json", "application/problem+json", "application/jwt", "text/html"]
    let answer = HTTPAnswer(
      status: [200, 201, 202, 403, 500][Int(first >> 2) % 5], contentType: types[Int(first & 3)],
      retryAfterSeconds: UInt64(first), body: Array(bytes.dropFirst()))
    let (attestation, issuance) = (ServiceAnswers.attestation(answer), ServiceAnswers.issuance(answer, from: service))
    let decision = ServiceAnswers.decision(answer, on: request)
    let values = ServiceOperation.allCases.map { ServiceAnswers.value(answer, of: $0) }
    for answer in [attestation, issuance, decision, values] as [Any?] { note(String(describing: answer)) }
    guard let failure = ServiceAnswers.problem(answer, kind: .refused, service: service) else { return }
    let line = CarrierReport.result(.failure(failure)).line
    note(line)
    try require(CarrierReport(line) != nil, "a failure that a carrier tells is refused by the prover")
  },
  FuzzTarget("enrolment-answer", ["HoldfastProver/Standing/EnrolmentStanding.swift"]) { bytes in
    let answer = try EnrolmentAnswer(bytes, about: Digest())
    note("\(answer.standing.status.name) \(answer.standing.expires)")
    note(answer.terms ?? [])
  },
  FuzzTarget(
    "app-configuration",
    [
      "HoldfastSDK/Account/InitialConfiguration.swift", "HoldfastSDK/Account/AccountConfiguration.swift",
      "HoldfastSDK/Account/CompactJWT.swift",
    ]
  ) { bytes in
    attempt { _ = try InitialConfiguration(String(decoding: bytes, as: UTF8.self)) }
    let signed = try Signer.sign(bytes, type: "holdfast-configuration+jwt")
    let text = String(decoding: signed, as: UTF8.self)
    guard let configuration = AccountConfiguration(text, of: try account()) else { return }
    // The signature is another one each time.
    note("\(configuration)".replacing(text, with: ""))
    try require(Set(configuration.pins.map(\.domain)).count == configuration.pins.count, "a domain has pins twice")
  },
]

/// An app's first configuration, with the signer's key.
private func account() throws -> InitialConfiguration {
  try InitialConfiguration(
    "holdfast-configuration:1?key=\(base64URL(Signer.point.bytes))&service=https://fuzz.example")
}
