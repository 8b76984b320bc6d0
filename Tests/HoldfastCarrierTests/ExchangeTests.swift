import HoldfastCarrier
import HoldfastFormats
import HoldfastOnline
import Testing

/// An environment without a network: the clock moves only while the exchange waits, and random pauses are as long as they can be.
final class Script: ExchangeEnvironment {
  typealias Reply = (HTTPRequest, PinnedService) -> Result<HTTPAnswer, CarrierFailure.Kind>
  private let reply: Reply
  var now: UInt64 = 1000
  /// The time that each request takes.
  var requestMilliseconds: UInt64 = 0
  var sent: [(service: String, path: String, moment: UInt64)] = []
  var limits: [UInt64] = []
  var bounds: [UInt64] = []
  var steps: [CarrierProgress] = []

  init(_ reply: @escaping Reply) { self.reply = reply }

  func send(
    _ request: HTTPRequest, to service: PinnedService, withinMilliseconds milliseconds: UInt64
  ) throws(CarrierFailure.Kind) -> HTTPAnswer {
    sent.append((service.address.description, request.path, now))
    limits.append(milliseconds)
    now += min(requestMilliseconds, milliseconds)
    return try reply(request, service).get()
  }

  func monotonicMilliseconds() -> UInt64 { now }
  func pause(milliseconds: UInt64) { now += milliseconds }
  func random(upTo bound: UInt64) -> UInt64 {
    bounds.append(bound)
    return bound
  }
  func report(_ progress: CarrierProgress) { steps.append(progress) }
}

func json(_ status: UInt64, _ text: String, retryAfter: UInt64? = nil) -> Result<
  HTTPAnswer, CarrierFailure.Kind
> {
  .success(
    HTTPAnswer(
      status: status, contentType: "application/json", retryAfterSeconds: retryAfter, body: Array(text.utf8)))
}

func problem(_ status: UInt64, _ text: String, retryAfter: UInt64? = nil) -> Result<
  HTTPAnswer, CarrierFailure.Kind
> {
  .success(
    HTTPAnswer(
      status: status, contentType: "application/problem+json; charset=utf-8", retryAfterSeconds: retryAfter,
      body: Array(text.utf8)))
}

private let id = String(repeating: "0a", count: 16)
private let attested = json(200, #"{"attestation":"a.b.c.d.e","arc":"ABCDEFGHIJ","expires":1}"#)
private let issued = json(201, #"{"token":"2GCA","format":"cose","claims":{}}"#)
private let waits = json(202, #"{"request":"\#(id)","status":"waiting"}"#, retryAfter: 7)

private func decided(_ status: String) -> Result<HTTPAnswer, CarrierFailure.Kind> {
  json(200, #"{"request":"\#(id)","status":"\#(status)"}"#)
}

extension CarrierTask {
  /// The enrolment; nil if the task is a call.
  var enrolment: EnrolmentWork? {
    get { if case .enrolment(let enrolment) = work { enrolment } else { nil } }
    set { work = newValue.map { .enrolment($0) } ?? work }
  }
}

@Suite struct ExchangeTests {
  private func task(_ services: String..., timeout: UInt64 = 60) throws -> CarrierTask {
    let text = #"{"version":1,"services":[{"url":"https://a","pins":[]}],"timeout":1,"evidence":"AAAA","device":{}}"#
    var task = try #require(CarrierTask(Array(text.utf8)))
    task.services = try services.map { PinnedService(try ServiceAddress($0), pins: []) }
    task.timeoutSeconds = timeout
    return task
  }

  private func run(_ task: CarrierTask, _ script: Script) -> CarrierResult {
    var exchange = Exchange(task, environment: script)
    return exchange.run()
  }

  private func kind(_ result: CarrierResult) -> CarrierFailure.Kind? {
    if case .failure(let failure) = result { failure.kind } else { nil }
  }

  @Test func `evidence and the request for the token go to the first service`() throws {
    let script = Script { request, _ in request.path == "/v1/attest" ? attested : issued }
    guard case .token(let token) = run(try task("https://a", "https://b"), script) else {
      return #expect(Bool(false))
    }
    #expect(token.bytes == [0xd8, 0x60, 0x80])
    #expect(script.sent.map(\.path) == ["/v1/attest", "/v1/tokens"])
    #expect(script.sent.map(\.service) == ["https://a", "https://a"])
    #expect(script.now == 1000)
  }

  @Test(arguments: [CarrierFailure.Kind.noName, .noConnection, .timedOut, .noTLS])
  func `after a failure that may pass, the next service is asked at once`(failure: CarrierFailure.Kind) throws {
    let script = Script { request, service in
      service.address.description == "https://a" ? .failure(failure) : request.path == "/v1/attest" ? attested : issued
    }
    guard case .token = run(try task("https://a", "https://b"), script) else { return #expect(Bool(false)) }
    #expect(script.sent.map(\.service) == ["https://a", "https://b", "https://b"])
    #expect(script.now == 1000)
    guard case .attesting = script.steps.first else { return #expect(Bool(false)) }
  }

  @Test(arguments: [
    CarrierFailure.Kind.wrongPin, .expiredCertificate, .certificateOfAnotherName, .untrustedCertificate,
    .badAuthorities,
    .malformedAnswer, .tooLongAnswer,
  ])
  func `a service that lies ends the exchange`(failure: CarrierFailure.Kind) throws {
    let script = Script { _, _ in .failure(failure) }
    #expect(kind(run(try task("https://a", "https://b"), script)) == failure)
    #expect(script.sent.count == 1)
  }

  @Test func `pauses double from a quarter of a second to eight seconds, with full jitter`() throws {
    let script = Script { _, _ in .failure(.noConnection) }
    #expect(kind(run(try task("https://a"), script)) == .noConnection)
    #expect(Array(script.bounds.prefix(8)) == [250, 500, 1000, 2000, 4000, 8000, 8000, 8000])
    let moments = script.sent.map(\.moment)
    let pauses = zip(moments, moments.dropFirst()).map { $1 - $0 }
    #expect(Array(pauses.prefix(6)) == [250, 500, 1000, 2000, 4000, 8000])
    #expect(script.now == 61_000)
  }

  @Test func `the number of retries and the pause are those of the task, but a service may ask for a longer one`()
    throws
  {
    let text =
      #"{"version":1,"services":[{"url":"https://a","pins":[]}],"timeout":3600,"evidence":"AAAA","device":{},"#
    let impatient = try #require(CarrierTask(Array((text + #""retries":3,"pause":20}"#).utf8)))
    let script = Script { _, _ in .failure(.noConnection) }
    #expect(kind(run(impatient, script)) == .noConnection)
    #expect(script.sent.map(\.moment) == [1000, 21_000, 41_000, 61_000])
    #expect(script.bounds == [])
    let once = try #require(CarrierTask(Array((text + #""retries":0}"#).utf8)))
    let single = Script { _, _ in .failure(.timedOut) }
    #expect(kind(run(once, single)) == .timedOut)
    #expect(single.sent.count == 1 && single.now == 1000)
    // An answer begins the count anew, and Retry-After is kept.
    let hasty = try #require(CarrierTask(Array((text + #""retries":1,"pause":0}"#).utf8)))
    var count = 0
    let waiting = Script { request, _ in
      count += 1
      if request.path == "/v1/attest" { return attested }
      if count == 5 { return decided("waiting") }
      return count < 4 ? problem(503, "{}", retryAfter: 30) : count < 6 ? waits : problem(503, "{}")
    }
    guard case .waiting = run(hasty, waiting) else { return #expect(Bool(false)) }
    #expect(waiting.sent[2].moment == 31_000)
  }

  @Test func `an answer starts the pauses anew, and each service has its own`() throws {
    var count = 0
    let script = Script { request, service in
      count += 1
      if service.address.description == "https://b" { return .failure(.timedOut) }
      return count > 6 ? (request.path == "/v1/attest" ? attested : issued) : .failure(.noConnection)
    }
    guard case .token = run(try task("https://a", "https://b"), script) else { return #expect(Bool(false)) }
    #expect(
      script.sent.map(\.service) == [
        "https://a", "https://b", "https://a", "https://b", "https://a", "https://b", "https://a", "https://a",
      ])
  }

  @Test(arguments: [408, 425, 429, 500, 503, 599] as [UInt64])
  func `a service that cannot answer now is left alone for as long as it says`(status: UInt64) throws {
    var isBusy = true
    let script = Script { request, _ in
      if isBusy {
        isBusy = false
        return problem(status, "<html>", retryAfter: 20)
      }
      return request.path == "/v1/attest" ? attested : issued
    }
    guard case .token = run(try task("https://a"), script) else { return #expect(Bool(false)) }
    #expect(script.now == 21_000)
  }

  @Test func `the time is kept, and no answer is waited for beyond it or for more than ten seconds`() throws {
    let script = Script { _, _ in .failure(.timedOut) }
    script.requestMilliseconds = 20_000
    #expect(kind(run(try task("https://a", timeout: 25), script)) == .timedOut)
    #expect(script.limits.allSatisfy { $0 <= 10_000 })
    #expect(script.now == 26_000)
    #expect(script.limits.last! < 10_000)
  }

  @Test func `a pause beyond the time ends with it`() throws {
    let script = Script { _, _ in problem(503, "{}", retryAfter: 1000) }
    #expect(kind(run(try task("https://a", timeout: 5), script)) == .notNow)
    #expect(script.now == 6000)
    #expect(script.sent.count == 1)
  }

  @Test func `a refusal is final, with everything that the service says of it`() throws {
    let text =
      #"{"type":"about:blank","title":"No","status":403,"detail":"Unknown","reasons":["unknownImage","debugger"],"#
      + #""arc":"ABCDEFGHIJ","request_id":"r-1","weight":-1.5}"#
    let script = Script { _, _ in problem(403, text) }
    guard case .failure(let failure) = run(try task("https://a", "https://b"), script) else {
      return #expect(Bool(false))
    }
    #expect(failure.kind == .refused)
    #expect(failure.reasons == ["unknownImage", "debugger"])
    #expect(failure.responseCode == "ABCDEFGHIJ")
    #expect((failure.title, failure.detail, failure.requestID) == ("No", "Unknown", "r-1"))
    #expect(script.sent.count == 1)
  }

  @Test(arguments: [
    "", "<html>", "[]", #"{"status":404}"#, #"{"title":1}"#, #"{"reasons":"x"}"#, #"{"reasons":[1]}"#,
    #"{"reasons":["a b"]}"#, #"{"arc":"a\nb"}"#, #"{"reasons":[""]}"#,
  ])
  func `an error without a problem document is malformed`(text: String) throws {
    let script = Script { _, _ in problem(403, text) }
    #expect(kind(run(try task("https://a"), script)) == .malformedAnswer)
  }

  @Test func `texts of the service are cut, and null is none`() throws {
    let long = String(repeating: "é", count: 3000)
    let script = Script { _, _ in problem(400, #"{"title":"\#(long)","detail":null,"reasons":null,"arc":null}"#) }
    guard case .failure(let failure) = run(try task("https://a"), script) else { return #expect(Bool(false)) }
    #expect(failure.kind == .refused)
    #expect(failure.title?.utf8.count == 256)
    #expect(failure.detail == nil)
  }

  @Test(arguments: [301, 302, 303, 307, 308, 300, 304] as [UInt64])
  func `a redirect is not followed`(status: UInt64) throws {
    let script = Script { _, _ in json(status, "{}") }
    #expect(kind(run(try task("https://a", "https://b"), script)) == .redirect)
    #expect(script.sent.count == 1)
  }

  @Test(arguments: [
    #"{}"#, #"{"attestation":"a.b.c.d","arc":"A","expires":1}"#, #"{"attestation":"a.b.c.d.e","expires":1}"#,
    #"{"attestation":"a.b.c.d.e","arc":"A"}"#, #"{"attestation":"a.b.c.d.!","arc":"A","expires":1}"#,
    #"{"attestation":1,"arc":"A","expires":1}"#, #"{"attestation":"a.b.c.d.e","arc":"A","expires":"1"}"#,
    #"{"attestation":"a.b.c.d.e","arc":"A","expires":1,"arc":"A"}"#,
  ])
  func `an answer to evidence without an attestation token is malformed`(text: String) throws {
    let script = Script { _, _ in json(200, text) }
    #expect(kind(run(try task("https://a"), script)) == .malformedAnswer)
  }

  @Test func `an answer in another media type, or with another status, is malformed`() throws {
    let html = Script { _, _ in .success(HTTPAnswer(status: 200, contentType: "text/html", body: [])) }
    #expect(kind(run(try task("https://a"), html)) == .malformedAnswer)
    let created = Script { request, _ in request.path == "/v1/attest" ? attested : json(200, "{}") }
    #expect(kind(run(try task("https://a"), created)) == .malformedAnswer)
    let none = Script { _, _ in json(204, "") }
    #expect(kind(run(try task("https://a"), none)) == .malformedAnswer)
  }

  @Test func `a token in another format than the wished one is malformed`() throws {
    var task = try task("https://a")
    task.enrolment?.wishes = TokenWishes(format: "jose")
    let script = Script { request, _ in request.path == "/v1/attest" ? attested : issued }
    #expect(kind(run(task, script)) == .malformedAnswer)
  }

  @Test func `a token with more claims than the prover reads is malformed`() throws {
    // Written as six bytes each.
    let claims = String(repeating: "\u{7f}", count: 11_000)
    let long = json(201, #"{"token":"2GCA","format":"cose","claims":{"a":"\#(claims)"}}"#)
    let script = Script { request, _ in request.path == "/v1/attest" ? attested : long }
    #expect(kind(run(try task("https://a"), script)) == .malformedAnswer)
  }

  @Test func `a request that waits is asked about as often as the service says, and its token collected`() throws {
    var questions = 0
    var isApproved = false
    let script = Script { request, _ in
      switch request.path {
      case "/v1/attest": return attested
      case "/v1/tokens": return isApproved ? issued : waits
      default:
        questions += 1
        isApproved = questions == 3
        return isApproved ? decided("approved") : json(200, #"{"request":"\#(id)","status":"waiting"}"#, retryAfter: 7)
      }
    }
    guard case .token = run(try task("https://a"), script) else { return #expect(Bool(false)) }
    let question = "/v1/requests/\(id)"
    #expect(
      script.sent.map(\.path)
        == ["/v1/attest", "/v1/tokens", question, question, question, "/v1/attest", "/v1/tokens"])
    #expect(script.now == 1000 + 3 * 7000)
    #expect(script.steps.count { if case .waiting(_, seconds: 7) = $0 { true } else { false } } == 3)
  }

  @Test func `without a Retry-After, the service is asked every five seconds, and never more than once a second`()
    throws
  {
    for (said, pause) in [(nil, 5000), (0, 1000), (100_000, 3_600_000)] as [(UInt64?, UInt64)] {
      var questions = 0
      let script = Script { request, _ in
        questions += 1
        return questions == 3
          ? decided("expired") : json(200, #"{"request":"\#(id)","status":"waiting"}"#, retryAfter: said)
      }
      var task = try task("https://a", timeout: 86_400)
      task.enrolment?.request = OnlineRequest(id: id, service: try ServiceAddress("https://a"))
      #expect(kind(run(task, script)) == .requestExpired)
      #expect(script.now == 1000 + 2 * pause)
    }
  }

  @Test func `if the time is over before the decision, the request waits`() throws {
    let script = Script { request, _ in
      request.path == "/v1/attest" ? attested : request.path == "/v1/tokens" ? waits : decided("waiting")
    }
    guard case .waiting(let request) = run(try task("https://a", timeout: 10), script) else {
      return #expect(Bool(false))
    }
    #expect(request.id == id)
    #expect(script.now == 11_000)
  }

  @Test func `a request that waits already is asked about first, at the service that keeps it`() throws {
    var task = try task("https://a", "https://b")
    task.enrolment?.request = OnlineRequest(id: id, service: try ServiceAddress("https://b"))
    let script = Script { request, _ in
      request.path == "/v1/attest" ? attested : request.path == "/v1/tokens" ? issued : decided("collected")
    }
    guard case .token = run(task, script) else { return #expect(Bool(false)) }
    #expect(script.sent.first?.service == "https://b")
    #expect(script.sent.first?.path == "/v1/requests/\(id)")
  }

  @Test func `a service that does not know a request of another one is no reason to give up`() throws {
    var task = try task("https://a", "https://b")
    task.enrolment?.request = OnlineRequest(id: id, service: try ServiceAddress("https://b"))
    var failures = 0
    let script = Script { request, service in
      if request.path == "/v1/attest" { return attested }
      if request.path == "/v1/tokens" { return issued }
      if service.address.description == "https://a" { return problem(404, #"{"status":404}"#) }
      failures += 1
      return failures < 3 ? .failure(.noConnection) : decided("approved")
    }
    guard case .token = run(task, script) else { return #expect(Bool(false)) }
    let alone = Script { _, _ in problem(404, #"{"status":404,"reasons":["unknownRequest"]}"#) }
    #expect(kind(run(task, alone)) == .refused)
  }

  @Test(arguments: [
    (#"{"request":"\#(id)","status":"refused","reason":"not ours"}"#, CarrierFailure.Kind.requestRefused),
    (#"{"request":"\#(id)","status":"refused"}"#, .requestRefused),
    (#"{"request":"\#(id)","status":"expired"}"#, .requestExpired),
    (#"{"request":"\#(id)","status":"other"}"#, .malformedAnswer),
    (#"{"request":"00","status":"approved"}"#, .malformedAnswer), (#"{"status":"approved"}"#, .malformedAnswer),
    (#"{"request":"\#(id)","status":"refused","reason":1}"#, .malformedAnswer),
  ])
  func `a decision is read strictly`(text: String, expected: CarrierFailure.Kind) throws {
    var task = try task("https://a")
    task.enrolment?.request = OnlineRequest(id: id, service: try ServiceAddress("https://a"))
    let script = Script { _, _ in json(200, text) }
    let result = run(task, script)
    #expect(kind(result) == expected)
    if case .failure(let failure) = result, text.contains("not ours") { #expect(failure.detail == "not ours") }
  }
}
