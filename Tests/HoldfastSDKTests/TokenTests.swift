import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOnline
import HoldfastProver
import HoldfastSDK
import Synchronization
import PowerCut
import TestSupport
import Testing

/// Tokens for API domains and for devices.
@Suite struct TokenTests {
  private let place: TemporaryFolder
  private let account: TestAccount
  private let client: HoldfastClient
  private let domain = "api.example.com"

  init() throws {
    place = try TemporaryFolder(in: memoryFolder)
    account = try TestAccount()
    client = try account.client(place)
  }

  private func claim(_ name: String, of result: FetchResult) -> JSONValue? {
    try? JSONValue(parsing: Array(result.loggableToken.utf8), byteLimit: 1 << 16)[name]
  }

  @Test func `a token is fetched once, and kept until shortly before it expires`() {
    let first = client.fetchToken(for: domain)
    #expect((first.status, first.arc) == (.success, "ABCDEFGHIJ"))
    account.pass(seconds: 269)
    #expect(client.fetchToken(for: "https://API.example.com:443/path?x").token == first.token)
    #expect(account.bodies(.fetch).count == 1)
    account.pass(seconds: 1)
    #expect(client.fetchToken(for: domain).token != first.token)
    #expect(account.bodies(.fetch).count == 2)
  }

  @Test func `each domain has its own token`() {
    let first = client.fetchToken(for: domain)
    #expect(client.fetchToken(for: "other.example.com").token != first.token)
    #expect(account.bodies(.fetch).map { $0["domain"]?.text } == [domain, "other.example.com"])
    #expect(client.fetchToken(for: domain).token == first.token)
  }

  @Test func `a clock that goes back makes no token last longer, and one that goes ahead ends it`() {
    let first = client.fetchToken(for: domain)
    account.world.withLock {
      $0.unixSeconds = 1_799_000_000
      $0.bootSeconds += 270
    }
    let second = client.fetchToken(for: domain)
    #expect(second.token != first.token)
    account[\.unixSeconds] = 1_800_000_000
    #expect(client.fetchToken(for: domain).token != second.token)
  }

  @Test func `a token that lives for seconds is used for four fifths of them`() {
    account[\.lifetime] = 10
    let first = client.fetchToken(for: domain)
    account.pass(seconds: 7)
    #expect(client.fetchToken(for: domain).token == first.token)
    account.pass(seconds: 1)
    #expect(client.fetchToken(for: domain).token != first.token)
  }

  @Test func `what appears in the process drops all tokens, and attests the app anew`() {
    let first = client.fetchToken(for: domain)
    let other = client.fetchToken(for: "other.example.com")
    account[\.checks] = 2
    account.fail(.refused, status: 403, reasons: ["debugger"], code: "KLMNOPQRST")
    let refused = client.fetchToken(for: domain)
    #expect((refused.status, refused.token, refused.arc) == (.rejected, "", "KLMNOPQRST"))
    #expect(refused.rejectionReasons == ["debugger"])
    #expect(refused.loggableToken == #"{"error":"rejected","arc":"KLMNOPQRST"}"#)
    // Also after it has disappeared again.
    account[\.checks] = 1
    account[\.failure] = nil
    #expect(client.fetchToken(for: domain).token != first.token)
    #expect(client.fetchToken(for: "other.example.com").token != other.token)
  }

  @Test func `a token does not count any more once another one was given for other checks`() {
    let first = client.fetchToken(for: domain)
    account[\.checks] = 2
    #expect(client.fetchToken(for: "other.example.com").status == .success)
    #expect(client.fetchToken(for: domain).token != first.token)
  }

  @Test func `other data makes the next fetch attest anew, and the same data does not`() throws {
    client.setDataHashInToken("alice")
    let first = client.fetchToken(for: domain)
    #expect(account.bodies(.fetch)[0]["hash"]?.text == "K9gGyX8OAK8aH8Myj6djqSaXI8jbj6xPk69x2xhtbpA=")
    #expect(claim("pay", of: first) == account.bodies(.fetch)[0]["hash"])
    client.setDataHashInToken("alice")
    #expect(client.fetchToken(for: domain).token == first.token)
    client.setDataHashInToken("bob")
    let second = client.fetchToken(for: domain)
    #expect(claim("pay", of: second) != claim("pay", of: first))
    client.setDataHashInToken(nil)
    #expect(claim("pay", of: client.fetchToken(for: domain)) == nil)
    #expect(account.bodies(.fetch).count == 3)
  }

  @Test func `data that is set while a fetch is under way does not get that fetch's token later`() {
    account.world.withLock { world in
      world.during = { [client] _ in client.setDataHashInToken("late") }
    }
    let early = client.fetchToken(for: domain)
    account.world.withLock { $0.during = nil }
    #expect(claim("pay", of: early) == nil)
    #expect(claim("pay", of: client.fetchToken(for: domain)) != nil)
  }

  @Test(arguments: [
    (CarrierFailure.Kind.noName, FetchStatus.noNetwork), (.noConnection, .noService), (.timedOut, .poorNetwork),
    (.notNow, .noService), (.noTLS, .noService), (.wrongPin, .mitmDetected), (.expiredCertificate, .mitmDetected),
    (.certificateOfAnotherName, .mitmDetected), (.untrustedCertificate, .mitmDetected), (.redirect, .noService),
    (.malformedAnswer, .noService), (.tooLongAnswer, .noService), (.badAuthorities, .internalError),
    (.fault, .internalError),
  ])
  func `a failure on the way has its status, and is asked again next time`(
    kind: CarrierFailure.Kind, status: FetchStatus
  ) {
    account.fail(kind)
    #expect(client.fetchToken(for: domain).status == status)
    #expect(client.fetchToken(for: domain).loggableToken == #"{"error":"\#(status.rawValue)"}"#)
    account[\.failure] = nil
    #expect(client.fetchToken(for: domain).status == .success)
    #expect(account.bodies(.fetch).count == 3)
  }

  @Test func `a connection that cannot be made is that of a host without a network, if it has no route`() {
    account.fail(.noConnection)
    account[\.hasNetwork] = false
    #expect(client.fetchToken(for: domain).status == .noNetwork)
  }

  @Test func `a host has a network if it has a default route`() {
    let titles = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    let local = "eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    let normal = "eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    let zeros = String(repeating: "0", count: 32)
    let refusing = "\(zeros) 00 \(zeros) 00 \(zeros) ffffffff 00000001 00000000 00200200       lo\n"
    let normal6 = "\(zeros) 00 \(zeros) 00 fe8\(zeros.dropFirst(3)) 00000400 00000001 00000000 00000003     eth0\n"
    #expect(HostNetwork.hasDefaultRoute(ipv4: titles + local + normal, ipv6: ""))
    #expect(HostNetwork.hasDefaultRoute(ipv4: "", ipv6: refusing + normal6))
    #expect(!HostNetwork.hasDefaultRoute(ipv4: titles + local, ipv6: refusing))
    #expect(!HostNetwork.hasDefaultRoute(ipv4: "", ipv6: ""))
  }

  @Test(arguments: [
    (404, "unknownDomain", FetchStatus.unknownURL), (409, "domainWithoutMeasurement", .unknownURL),
    (409, "unprotectedDomain", .unprotectedURL),
    (403, "disabledFeature", .disabled), (403, "unknownImage", .rejected), (400, "", .internalError),
    (404, "", .internalError), (401, "", .internalError),
  ])
  func `a refusal has its status`(status: UInt64, reason: String, expected: FetchStatus) {
    account.fail(.refused, status: status, reasons: [reason])
    let result = client.fetchToken(for: domain)
    #expect(result.status == expected)
    #expect(result.rejectionReasons == (expected == .rejected ? [reason] : []))
  }

  @Test func `a refusal tells people whom to ask, if the service says so`() {
    account.fail(.refused, status: 403, reasons: ["unknownImage"], help: "Ask the front desk, ext. 12")
    let results = [client.fetchToken(for: domain), client.fetchCustomJWT(payload: "{}")]
    #expect(results.allSatisfy { $0.status == .rejected && $0.help == "Ask the front desk, ext. 12" })
    account.fail(.refused, status: 403, reasons: ["unknownImage"])
    #expect(client.fetchToken(for: domain).help == nil)
    account[\.failure] = nil
    #expect(client.fetchToken(for: domain).help == nil)
  }

  @Test func `that a domain has no token counts for a minute`() {
    account.fail(.refused, status: 404, reasons: ["unknownDomain"])
    for _ in 0..<2 { #expect(client.fetchToken(for: domain).status == .unknownURL) }
    #expect(account.bodies(.fetch).count == 1)
    account.pass(seconds: 60)
    account[\.failure] = nil
    #expect(client.fetchToken(for: domain).status == .success)
  }

  @Test(arguments: [
    "", "http://api.example.com", "ftp://a", "*", "a b", "a..b", ".a", "-a", "a_b", "https://", "https://user@a", "é",
    "https://a\\@b", String(repeating: "a", count: 64), String(repeating: "a.", count: 127),
  ])
  func `what is no domain is not asked for`(text: String) {
    #expect(client.fetchToken(for: text).status == .badURL)
    #expect(account.bodies(.fetch).isEmpty)
  }

  @Test(arguments: [
    ("token", JSONValue.null), ("token", .string("a.b")), ("token", .integer(1)), ("expires", .null),
    ("expires", .integer(1)), ("expires", .integer(1_800_000_301)), ("did", .string("AAAA")), ("arc", .string("a b")),
    ("arc", .null),
    ("message_key", .string("AAAA")), ("strings", .array([])), ("configuration", .null), ("force_pins", .string("1")),
  ])
  func `an answer with a member out of bounds is none`(name: String, value: JSONValue) {
    account.world.withLock { world in
      world.answer = { operation, answer in
        guard operation == .fetch else { return answer }
        return .object((answer.members ?? []).map { ($0.0, $0.0 == name ? value : $0.1) })
      }
    }
    #expect(client.fetchToken(for: domain).status == .noService)
    #expect(client.messageSignature(of: "x") == nil && client.deviceID == nil)
  }

  @Test func `an app that cannot be measured gets nothing, and asks nobody`() {
    account[\.cannotMeasure] = true
    #expect(client.fetchToken(for: domain).status == .internalError)
    #expect(account.bodies(.fetch).isEmpty)
  }

  @Test func `a loggable token has the claims and six characters of the signature`() throws {
    let result = client.fetchToken(for: domain)
    let signature = try #require(result.token.split(separator: ".").last)
    #expect(claim("sip", of: result)?.text == String(signature.prefix(6)))
    #expect(claim("iss", of: result)?.text == "service")
    #expect(!result.loggableToken.contains(signature))
  }

  @Test func `calls at the same time share one request`() {
    let others = Mutex<[FetchResult]>([])
    let threads = Mutex<[Thread]>([])
    account.world.withLock { world in
      world.during = { [account, client] operation in
        guard operation == .fetch else { return }
        guard threads.withLock({ $0.isEmpty }) else { return }
        for _ in 0..<3 {
          let thread = try? Thread {
            let result = client.fetchToken(for: "api.example.com")
            others.withLock { $0.append(result) }
          }
          threads.withLock { $0 += thread.map { [$0] } ?? [] }
        }
        // If they made requests themselves, these would come at once.
        let deadline = Deadline(afterMilliseconds: 100)
        while account.bodies(.fetch).count == 1, !deadline.hasPassed { usleep(1000) }
      }
    }
    let first = client.fetchToken(for: domain)
    for thread in threads.withLock({ $0 }) { thread.join() }
    #expect(others.withLock { $0.map(\.token) } == Array(repeating: first.token, count: 3))
    #expect(account.bodies(.fetch).count == 1)
  }

  @Test func `a task fetches without blocking`() async {
    let result = await client.fetchToken(for: domain)
    #expect(result.status == .success)
    #expect(await client.fetchToken(for: domain).token == result.token)
  }
}

/// The app's statements, and measurements for devices.
@Suite struct AttestationTests {
  private let place: TemporaryFolder
  private let account: TestAccount
  private let client: HoldfastClient
  private let device: DeviceDescriptor

  init() throws {
    place = try TemporaryFolder(in: memoryFolder)
    account = try TestAccount()
    client = try account.client(place)
    device = try DeviceDescriptor(deviceID: DeviceID(), publicPoint: account.point)
  }

  @Test func `a measurement is a token for the backend, and a configuration to keep`() {
    client.setDataHashInToken("alice")
    let result = client.fetchToken(for: "api.example.com", measuringFor: device)
    #expect((result.status, result.token, result.arc) == (.success, "a.b.c.d.e", "ABCDEFGHIJ"))
    #expect(result.measurementConfig == [3, 1])
    #expect(result.loggableToken == #"{"arc":"ABCDEFGHIJ"}"#)
    let body = account.bodies(.attest)[0]
    #expect(body["device"] == device.json)
    #expect(body["domain"]?.text == "api.example.com")
    #expect(body["hash"]?.text != nil)
    #expect(client.fetchToken(for: "api.example.com", measuringFor: device).measurementConfig == [3, 2])
    #expect(account[\.removed] == 0)
  }

  @Test func `a baseline without a token is removed`() {
    _ = client.fetchToken(for: "api.example.com")
    let signature = client.messageSignature(of: "x")
    account.fail(.refused, status: 403, reasons: ["unknownDevice"])
    #expect(client.fetchToken(for: "api.example.com", measuringFor: device).status == .rejected)
    // The app itself was not refused.
    #expect(client.messageSignature(of: "x") == signature)
    account.fail(.timedOut)
    #expect(client.fetchToken(for: "api.example.com", measuringFor: device).status == .poorNetwork)
    #expect(account[\.removed] == 2)
    #expect(client.fetchToken(for: "", measuringFor: device).status == .badURL)
  }

  @Test func `a user property goes into the next attestation`() {
    _ = client.fetchToken(for: "api.example.com")
    client.setUserProperty("käfer\u{7f} 1")
    _ = client.fetchToken(for: "api.example.com")
    client.setUserProperty(String(repeating: "x", count: 129))
    _ = client.fetchToken(for: "api.example.com")
    client.setUserProperty(nil)
    _ = client.fetchToken(for: "api.example.com")
    #expect(account.world.withLock { $0.claims.map { $0.userProperty?.description } } == [nil, "kfer 1", nil])
  }

  @Test func `the property $error names the components that changed`() throws {
    account[\.changes] = ["app.text", "os.release"] + (0..<20).map { "x\($0)" }
    client.setUserProperty("$error")
    _ = client.fetchToken(for: "api.example.com")
    let claims = try #require(account.world.withLock { $0.claims.last })
    #expect(claims.userProperty?.description == "$error")
    #expect(
      claims.properties.map { $0.description }.prefix(3) == ["changed:app.text", "changed:os.release", "changed:x0"])
    #expect(claims.properties.count == 16)
  }

  @Test func `the development key proves itself for the evidence, and is checked`() throws {
    try client.setDevelopmentKey("AAAQEAYEAUDAOCAJBIFQYDIOB4")
    _ = client.fetchToken(for: "api.example.com")
    // HMAC-SHA-256 under 00 01 … 0f of the label, a zero byte and SHA-256 of 01 02 01, by Python's hmac.
    #expect(account.bodies(.fetch)[0]["development"]?.text == Self.developmentCode)
    try client.setDevelopmentKey("aaaqeayeaudaocajbifqydiob4")
    _ = client.fetchToken(for: "api.example.com")
    #expect(account.bodies(.fetch).count == 1)
    for text in ["", "AAAQEAYEAUDAOCAJBIFQYDIOB5", "AAAQEAYEAUDAOCAJBIFQYDIOB", "1AAQEAYEAUDAOCAJBIFQYDIOB4", "é"] {
      #expect(throws: ClientError.self) { try client.setDevelopmentKey(text) }
    }
    try client.setDevelopmentKey(nil)
    _ = client.fetchToken(for: "api.example.com")
    #expect(account.bodies(.fetch)[1]["development"] == nil)
  }

  private static let developmentCode = "AeuNemD5nWpHNli6vKGGr2x2I338Ptbc1HpYnaNgIdw="

  @Test func `custom claims are signed, and never kept`() {
    let first = client.fetchCustomJWT(payload: #"{ "role": "admin", "levels": [1, 2] }"#)
    #expect(first.status == .success && first.token.split(separator: ".").count == 3)
    #expect(
      account.bodies(.fetch)[0]["payload"]
        == .object([("role", .string("admin")), ("levels", .array([.integer(1), .integer(2)]))]))
    _ = client.fetchCustomJWT(payload: #"{"role":"admin"}"#)
    #expect(account.bodies(.fetch).count == 2)
  }

  @Test(arguments: [
    "", "[]", "1", "{", #"{"a":1.5}"#, #"{"a":1,"a":2}"#, #"{"exp":1}"#, #"{"\u0065xp":1}"#, #"{"did":""}"#,
    #"{"a":"\#(String(repeating: "x", count: 4090))"}"#, String(repeating: #"{"a":"#, count: 20),
  ])
  func `a payload that cannot be signed is not sent`(payload: String) {
    #expect(client.fetchCustomJWT(payload: payload).status == .badPayload)
    #expect(account.bodies(.fetch).isEmpty)
  }
}
