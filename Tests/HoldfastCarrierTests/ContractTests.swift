import HoldfastCarrier
import HoldfastCore
import HoldfastFormats
import HoldfastOnline
import Testing

/// The two halves of the contract between prover and carrier, of which each parses what the other one writes.
@Suite struct ContractTests {
  private let service: ServiceAddress
  private let request: OnlineRequest

  init() throws {
    service = try ServiceAddress("https://a.example")
    request = try #require(OnlineRequest(id: String(repeating: "0a", count: 16), service: service))
  }

  private func report(_ json: String) -> CarrierReport? { CarrierReport(Array(json.utf8)) }

  private let task =
    #"{"version":1,"services":[{"url":"https://a.example","pins":[]}],"timeout":60,"evidence":"AAAA","device":{}"#

  @Test func `a task arrives as it was sent`() throws {
    let pin = try #require(ServicePin("sha256//" + String(repeating: "A", count: 43) + "="))
    let line = CarrierTaskLine.encode(
      services: [PinnedService(service, pins: [pin]), PinnedService(try ServiceAddress("http://localhost"), pins: [])],
      authorities: "ca \"1\".pem", timeoutSeconds: 60, evidence: [0, 0, 0], device: .object([("a", .integer(1))]),
      invitation: "ABCDE", wishes: TokenWishes(format: "jose", user: "alice", commands: ["lock", "unlock"]),
      request: request)
    #expect(line.last == 0x0a)
    #expect(line.count { $0 == 0x0a } == 1)
    let task = try #require(CarrierTask(line))
    let enrolment = try #require(task.enrolment)
    #expect(task.services.map(\.address.description) == ["https://a.example", "http://localhost"])
    #expect(task.services.map(\.pins) == [[pin], []])
    #expect(task.authorities == TrustedAuthorities(file: "ca \"1\".pem", hasSystem: false))
    #expect(enrolment.attempts == .usual)
    #expect(task.timeoutSeconds == 60)
    #expect(enrolment.evidence == "AAAA")
    #expect(enrolment.device == .object([("a", .integer(1))]))
    #expect(enrolment.invitation == "ABCDE")
    #expect((enrolment.wishes.format, enrolment.wishes.user) == ("jose", "alice"))
    #expect(enrolment.wishes.commands == ["lock", "unlock"])
    #expect(enrolment.request?.id == request.id)
    #expect(enrolment.request?.service == service)
  }

  @Test func `a task without wishes has none`() throws {
    let line = CarrierTaskLine.encode(
      services: [PinnedService(service, pins: [])], authorities: nil, timeoutSeconds: 1, evidence: [0],
      device: .object([]), invitation: nil, wishes: TokenWishes(), request: nil)
    let task = try #require(CarrierTask(line))
    let enrolment = try #require(task.enrolment)
    #expect(
      task.authorities.only == nil && task.authorities.added == nil && enrolment.invitation == nil
        && enrolment.request == nil)
    #expect(enrolment.wishes.members.isEmpty)
  }

  @Test func `authorities in addition to those of the system, retries and a pause arrive`() throws {
    let rule = try #require(AttemptRule(retryCount: 3, pauseSeconds: 0))
    let line = CarrierTaskLine.encode(
      services: [PinnedService(service, pins: [])], authorities: "ca.pem", withSystem: true, attempts: rule,
      timeoutSeconds: 1, evidence: [0], device: .object([]), invitation: nil, wishes: TokenWishes(), request: nil)
    let task = try #require(CarrierTask(line))
    #expect((task.authorities.only, task.authorities.added) == (nil, "ca.pem"))
    #expect(task.enrolment?.attempts == rule)
    #expect(AttemptRule(retryCount: 1001) == nil && AttemptRule(pauseSeconds: 3601) == nil)
  }

  @Test(arguments: [
    ",\"system\":true}", ",\"ca\":\"a\",\"system\":false}", ",\"ca\":\"a\",\"system\":1}", ",\"retries\":1001}",
    ",\"retries\":\"1\"}", ",\"pause\":3601}", ",\"pause\":null}",
    ",\"more\":1}", ",\"ca\":1}", ",\"format\":null}", ",\"commands\":[1]}", ",\"request\":{\"id\":\"0\"}}", "} {}", "",
    ",\"version\":2}",
  ])
  func `a task with anything else is refused`(end: String) {
    #expect(CarrierTask(Array((task + end).utf8))?.timeoutSeconds == nil)
  }

  @Test(arguments: ServiceOperation.allCases)
  func `a call arrives as it was sent`(operation: ServiceOperation) throws {
    let body: JSONValue? = operation.hasBody ? .object([("evidence", .string("AAAA"))]) : nil
    let values = operation.parameters.map { _ in "1f" }
    let call = try #require(ServiceCall(operation, body: body, values: values, attemptCount: 3))
    let line = CarrierTaskLine.encode(
      services: [PinnedService(service, pins: [])], authorities: "ca.pem", timeoutSeconds: 10, call: call)
    #expect(line.count { $0 == 0x0a } == 1)
    let task = try #require(CarrierTask(line))
    guard case .call(let arrived) = task.work else { return #expect(Bool(false)) }
    #expect((arrived.operation, arrived.body, arrived.values, arrived.attemptCount) == (operation, body, values, 3))
    #expect((task.authorities.only, task.timeoutSeconds) == ("ca.pem", 10))
  }

  @Test(arguments: [
    #""operation":"other","attempts":1"#, #""operation":"fetch","attempts":1"#,
    #""operation":"bulletins","attempts":1"#,
    #""operation":"bulletins","attempts":1,"query":["1"]"#, #""operation":"bulletins","attempts":1,"query":["1",2]"#,
    #""operation":"bulletins","attempts":1,"query":{}"#, #""operation":"bulletins","attempts":1,"query":["1","?"]"#,
    #""operation":"configuration","attempts":1,"query":["1"]"#,
    #""operation":"fetch","attempts":0,"body":{}"#, #""operation":"fetch","attempts":17,"body":{}"#,
    #""operation":"fetch","attempts":1,"body":[]"#, #""operation":"configuration","attempts":1,"body":{}"#,
    #""operation":"fetch","attempts":1,"body":{},"evidence":"AAAA""#, #""operation":1,"attempts":1,"body":{}"#,
    #""operation":"fetch","body":{}"#,
  ])
  func `a call with anything else is refused`(members: String) {
    let text = #"{"version":1,"services":[{"url":"https://a.example","pins":[]}],"timeout":60,"# + members + "}"
    #expect(CarrierTask(Array(text.utf8))?.timeoutSeconds == nil)
  }

  @Test func `each report arrives as it was sent`() throws {
    let failure = CarrierFailure(
      .refused, service: "https://a.example", status: 403, title: "No", detail: "It is \"unknown\"\n",
      reasons: ["unknownImage", "debugger"], responseCode: "ABCDEFGHIJ", requestID: "r-1")
    let issued = JSONValue.object([
      ("token", .string("2GCA")), ("format", .string("cose")), ("claims", .object([("a", .integer(1))])),
    ])
    let token = try #require(OnlineToken(issued, from: service))
    let reports: [CarrierReport] = [
      .progress(.attesting(service)), .progress(.asking(service)), .progress(.waiting(request, seconds: 5)),
      .progress(.failed(failure)), .result(.token(token)), .result(.waiting(request)), .result(.failure(failure)),
      .result(.answer(ServiceAnswer(from: service, .object([("token", .null)])))),
      .result(.answer(ServiceAnswer(from: service, .string("a.b.c")))),
    ]
    for report in reports {
      #expect(report.line.count { $0 == 0x0a } == 1)
      #expect(CarrierReport(Array(report.line.dropLast()))?.line == report.line)
    }
  }

  @Test(arguments: [
    CarrierFailure.Kind.refused, .requestRefused, .requestExpired, .noName, .noConnection, .timedOut, .noTLS, .notNow,
    .wrongPin, .expiredCertificate, .certificateOfAnotherName, .untrustedCertificate, .badAuthorities, .redirect,
    .malformedAnswer, .tooLongAnswer, .fault,
  ])
  func `every kind of failure has a name by which it arrives`(kind: CarrierFailure.Kind) {
    let line = CarrierReport.result(.failure(CarrierFailure(kind))).line
    guard case .result(.failure(let failure)) = CarrierReport(Array(line.dropLast())) else {
      return #expect(Bool(false))
    }
    #expect(failure.kind == kind)
  }

  @Test(arguments: [
    "", "{}", "[]", "null", #"{"progress":"waiting"}"#, #"{"progress":"attesting"}"#,
    #"{"progress":"attesting","service":"https://a.example","more":1}"#,
    #"{"progress":"attesting","service":"http://a.example"}"#, #"{"progress":"other","service":"https://a.example"}"#,
    #"{"progress":"waiting","service":"https://a.example","request":"0a","seconds":1}"#, #"{"result":"failure"}"#,
    #"{"result":"token","service":"https://a.example","token":"2GCA","format":"xml","claims":{}}"#,
    #"{"result":"token","service":"https://a.example","token":"2GC","format":"cose","claims":{}}"#,
    #"{"result":"token","service":"https://a.example","token":"","format":"cose","claims":{}}"#,
    #"{"result":"token","service":"https://a.example","token":"2GCA","format":"cose","claims":[]}"#,
    #"{"result":"token","service":"https://a.example","token":"2GCA","format":"cose","claims":{},"result":"token"}"#,
  ])
  func `anything else is no report`(json: String) {
    #expect(report(json)?.line == nil)
  }

  @Test func `a token of more than 3072 bytes is no token`() {
    for (count, isToken) in [(3072, true), (3073, false)] {
      var text: [UInt8] = []
      let bytes = [UInt8](repeating: 0xd8, count: count)
      text.append(asPaddedBase64: bytes.span)
      let value = JSONValue.object([
        ("token", .string(String(decoding: text, as: UTF8.self))), ("format", .string("cose")), ("claims", .object([])),
      ])
      #expect((OnlineToken(value, from: service) != nil) == isToken)
    }
  }

  @Test func `a failure out of bounds is no failure`() {
    for reasons in [Array(repeating: "x", count: 17), [String(repeating: "x", count: 65)]] {
      let line = CarrierReport.result(.failure(CarrierFailure(.refused, reasons: reasons))).line
      #expect(CarrierReport(Array(line.dropLast()))?.line == nil)
    }
  }
}
