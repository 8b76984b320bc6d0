import HoldfastCarrier
import HoldfastFormats
import HoldfastOnline
import Testing

/// Calls, which one answer completes.
@Suite struct CallTests {
  private func run(
    _ operation: ServiceOperation, _ script: Script, at services: [String] = ["https://a"], attemptCount: UInt64 = 3
  ) throws -> CarrierResult {
    let pinned = try services.map { PinnedService(try ServiceAddress($0), pins: []) }
    let body: JSONValue? = operation.hasBody ? .object([("evidence", .string("AAAA"))]) : nil
    let call = try #require(ServiceCall(operation, body: body, attemptCount: attemptCount))
    let line = CarrierTaskLine.encode(services: pinned, authorities: nil, timeoutSeconds: 60, call: call)
    var exchange = Exchange(try #require(CarrierTask(line)), environment: script)
    return exchange.run()
  }

  private func answer(_ result: CarrierResult) -> JSONValue? {
    if case .answer(let answer) = result { answer.value } else { nil }
  }

  private func kind(_ result: CarrierResult) -> CarrierFailure.Kind? {
    if case .failure(let failure) = result { failure.kind } else { nil }
  }

  @Test(arguments: [(ServiceOperation.fetch, "/v1/fetch"), (.attest, "/v1/attest"), (.audit, "/v1/audit")])
  func `the body is posted, and the object in the answer passed on`(operation: ServiceOperation, path: String) throws {
    var body: [UInt8]?
    let script = Script { request, _ in
      body = request.body
      return json(200, #"{"token":"a.b.c","weight":1.5}"#)
    }
    let result = try run(operation, script)
    #expect(answer(result) == .object([("token", .string("a.b.c")), ("weight", .string("1.5"))]))
    #expect(script.sent.map(\.path) == [path])
    #expect(body == Array(#"{"evidence":"AAAA"}"#.utf8))
  }

  @Test func `a configuration is got, and its text passed on`() throws {
    let script = Script { request, _ in
      #expect(request.body == nil)
      return .success(HTTPAnswer(status: 200, contentType: "application/jwt", body: Array("a.b.c".utf8)))
    }
    #expect(answer(try run(.configuration, script)) == .string("a.b.c"))
    #expect(script.sent.map(\.path) == ["/v1/configuration"])
  }

  @Test func `the parameters are in the query`() throws {
    let values = [String(repeating: "0a", count: 16), "17"]
    let call = try #require(ServiceCall(.bulletins, values: values, attemptCount: 1))
    let services = [PinnedService(try ServiceAddress("https://a"), pins: [])]
    let line = CarrierTaskLine.encode(services: services, authorities: nil, timeoutSeconds: 60, call: call)
    var exchange = Exchange(
      try #require(CarrierTask(line)),
      environment: Script { request, _ in
        #expect(request.body == nil)
        return json(200, #"{"bulletins":[]}"#)
      })
    #expect(answer(exchange.run()) == .object([("bulletins", .array([]))]))
    #expect(exchange.environment.sent.map(\.path) == ["/v1/bulletins?device=\(values[0])&have=17"])
    for wrong in [
      [], ["1"], ["1", "2", "3"], ["1", ""], ["1", "2&x=3"], ["1", "g"], ["1", "A"], [values[0] + "0", "1"],
    ] {
      #expect(ServiceCall(.bulletins, values: wrong, attemptCount: 1) == nil, "\(wrong)")
    }
    #expect(ServiceCall(.configuration, values: ["1"], attemptCount: 1) == nil)
  }

  @Test(arguments: ["", "a b", "a\nb", "é"])
  func `any other text is malformed`(text: String) throws {
    let script = Script { _, _ in
      .success(HTTPAnswer(status: 200, contentType: "application/jwt", body: Array(text.utf8)))
    }
    #expect(kind(try run(.configuration, script)) == .malformedAnswer)
  }

  @Test(arguments: ["[]", "", "{", #""a.b.c""#])
  func `an answer that is no object is malformed`(text: String) throws {
    #expect(kind(try run(.fetch, Script { _, _ in json(200, text) })) == .malformedAnswer)
    #expect(kind(try run(.fetch, Script { _, _ in json(201, "{}") })) == .malformedAnswer)
  }

  @Test func `each service is tried as often as the call says, and no more`() throws {
    let script = Script { _, _ in .failure(.noConnection) }
    #expect(kind(try run(.fetch, script, at: ["https://a", "https://b"], attemptCount: 3)) == .noConnection)
    #expect(script.sent.count { $0.service == "https://a" } == 3)
    #expect(script.sent.count { $0.service == "https://b" } == 3)
    #expect(script.sent.count == 6)
  }

  @Test func `the next service answers when the first is down`() throws {
    let script = Script { _, service in
      service.address.description == "https://a" ? problem(503, "{}") : json(200, #"{"a":1}"#)
    }
    #expect(answer(try run(.fetch, script, at: ["https://a", "https://b"])) == .object([("a", .integer(1))]))
    #expect(script.sent.count == 2)
  }

  @Test func `a refusal is final, and arrives with its reasons`() throws {
    let script = Script { _, _ in problem(403, #"{"reasons":["unknownImage"],"arc":"ABCDEFGHIJ"}"#) }
    guard case .failure(let failure) = try run(.fetch, script, at: ["https://a", "https://b"]) else {
      return #expect(Bool(false))
    }
    #expect((failure.kind, failure.reasons, failure.responseCode) == (.refused, ["unknownImage"], "ABCDEFGHIJ"))
    #expect(script.sent.count == 1)
  }

  @Test func `a long answer of texts is passed on, and one that grows beyond the limit is not`() throws {
    let text = String(repeating: "x", count: 200_000)
    #expect(answer(try run(.fetch, Script { _, _ in json(200, #"{"s":"\#(text)"}"#) }))?["s"]?.text == text)
    // Each of these characters takes two bytes in the answer, and six in the line.
    let escaped = String(repeating: "\u{80}", count: 12_000)
    #expect(kind(try run(.attest, Script { _, _ in json(200, #"{"s":"\#(escaped)"}"#) })) == .tooLongAnswer)
  }
}
