import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOnline
import HoldfastOpenSSL
import HoldfastSDK
import Synchronization
import PowerCut
import TestSupport
import Testing

/// The account's configuration, its pins, and what a client keeps.
@Suite struct ConfigurationTests {
  private let place: TemporaryFolder
  private let account: TestAccount

  init() throws {
    place = try TemporaryFolder(in: memoryFolder)
    account = try TestAccount()
    account[\.pins] = [("api.example.com", ["sha256//" + pin(1), "sha256//" + pin(2)]), ("*", ["sha256//" + pin(3)])]
  }

  private func revision(_ client: HoldfastClient) -> UInt64? {
    let parts = client.fetchConfig().split(separator: ".")
    guard parts.count == 3, let bytes = try? decodePublicBase64URL(String(parts[1])) else { return nil }
    return (try? JSONValue(parsing: bytes, byteLimit: bytes.count))?["revision"]?.number
  }

  @Test func `the first start asks for two seconds, and a later one does not ask`() throws {
    #expect(revision(try account.client(place)) == 1)
    #expect(account.world.withLock { $0.calls.map(\.operation) } == [.configuration])
    #expect(account.world.withLock { $0.calls.map(\.seconds) } == [2])
    account.fail(.noConnection)
    let client = try account.client(place)
    #expect(account.bodies(.configuration).count == 1)
    #expect(client.pins().count == 2)
  }

  @Test func `a first start without a network succeeds, and the next fetch brings the configuration`() throws {
    account.fail(.noConnection)
    let client = try account.client(place)
    #expect(client.fetchConfig() == account.text)
    #expect(client.pins().isEmpty)
    account[\.failure] = nil
    #expect(client.fetchToken(for: "api.example.com").isConfigChanged)
    #expect(revision(client) == 1)
    #expect(!client.fetchToken(for: "api.example.com").isConfigChanged)
  }

  @Test func `a new configuration is announced until it is read`() throws {
    let client = try account.client(place)
    account[\.revision] = 2
    #expect(client.fetchToken(for: "api.example.com").isConfigChanged)
    #expect(client.fetchToken(for: "api.example.com").isConfigChanged)
    #expect(account.bodies(.configuration).count == 2)
    #expect(revision(client) == 2)
    #expect(!client.fetchToken(for: "api.example.com").isConfigChanged)
    #expect(revision(try account.client(place)) == 2)
  }

  @Test func `a lower revision changes nothing, not even on the disk`() throws {
    account[\.revision] = 5
    let old = account.configuration()
    account[\.revision] = 6
    let client = try account.client(place)
    account[\.configurationText] = old
    account[\.revision] = 7
    _ = client.fetchToken(for: "api.example.com")
    #expect(revision(client) == 6)
    #expect(revision(try account.client(place)) == 6)
  }

  @Test func `a lower revision does not even take the place of a lost file while the process runs`() throws {
    account[\.revision] = 5
    let old = account.configuration()
    account[\.revision] = 6
    let client = try account.client(place)
    let id = try Files.names(inFolder: place.file("app/accounts"), limit: 2)[0]
    try Files.removeFile(at: place.file("app/accounts/\(id)/configuration.jwt"))
    account[\.configurationText] = old
    account[\.revision] = 7
    #expect(!client.fetchToken(for: "api.example.com").isConfigChanged)
    #expect(revision(client) == 6)
    #expect(!(try Files.names(inFolder: place.file("app/accounts/\(id)"), limit: 9)).contains("configuration.jwt"))
  }

  @Test func `another process's newer configuration is not overwritten`() throws {
    let one = try account.client(place)
    account[\.revision] = 3
    let two = try account.client(place)
    _ = two.fetchToken(for: "api.example.com")
    account[\.revision] = 2
    _ = one.fetchToken(for: "api.example.com")
    #expect(revision(one) == 3)
    #expect(revision(try account.client(place)) == 3)
  }

  @Test func `what the account's key did not sign as a configuration is none`() throws {
    let other = try TestAccount()
    other[\.revision] = 9
    account[\.revision] = 9
    let good = account.configuration()
    let parts = good.split(separator: ".").map(String.init)
    let bad = [
      other.configuration(), account.configuration(type: "holdfast-app+jwt"), "", "..", parts[0] + "." + parts[1],
      good + ".x", String(good.dropLast(4)), "\(parts[0]).\(parts[1]).\(parts[2].dropLast(4))AAAA",
      "\(base64URL(Array(#"{"alg":"none"}"#.utf8).span)).\(parts[1]).\(parts[2])", good + "=",
      "\(parts[0]).\(base64URL(Array("{}".utf8).span)).\(parts[2])",
    ]
    account[\.revision] = 1
    let client = try account.client(place)
    account[\.revision] = 2
    for text in bad {
      account[\.configurationText] = text
      _ = try account.client(at: place.file("fresh"))
      account.pass(seconds: 300)
      #expect(client.fetchToken(for: "api.example.com").status == .success)
      #expect(revision(client) == 1)
    }
    #expect(try account.client(at: place.file("fresh")).pins().isEmpty)
  }

  @Test(arguments: [
    ("revision", JSONValue.string("2")), ("revision", .null), ("services", .array([.string("http://a.example")])),
    ("services", .array([.string("https://b"), .string("https://b")])), ("services", .null),
    ("domains", .object([("A.example", .null)])), ("domains", .array([])), ("features", .object([])),
    ("pins", .object([("other.example.com", .array([]))])), ("pins", .object([("*", .array([.string("x")]))])),
    ("pins", .object([("*", .array(Array(repeating: .string("sha256//" + pin(1)), count: 17)))])),
    ("force_pins", .bool(true)), ("iss", .null),
  ])
  func `a signed configuration with a member out of bounds is none`(name: String, value: JSONValue) throws {
    let parts = account.configuration().split(separator: ".").map(String.init)
    let bytes = try decodePublicBase64URL(parts[1])
    let members = try #require(try JSONValue(parsing: bytes, byteLimit: bytes.count).members)
    let changed = JSONValue.object(members.map { ($0.0, $0.0 == name ? value : $0.1) })
    account[\.configurationText] = account.signed(changed, type: "holdfast-configuration+jwt")
    #expect(try account.client(place).fetchConfig() == account.text)
  }

  @Test func `a configuration may have members that are not known yet`() throws {
    let parts = account.configuration().split(separator: ".").map(String.init)
    let bytes = try decodePublicBase64URL(parts[1])
    let members = try #require(try JSONValue(parsing: bytes, byteLimit: bytes.count).members)
    account[\.configurationText] = account.signed(
      .object(members + [("new", .integer(1))]), type: "holdfast-configuration+jwt")
    #expect(revision(try account.client(place)) == 1)
  }

  @Test func `services of the configuration are asked first, and those of the beginning last`() throws {
    account[\.services] = ["https://b.example", "https://c.example"]
    let client = try account.client(place)
    _ = client.fetchToken(for: "api.example.com")
    let services = account.world.withLock { $0.calls.last?.services.map(\.address.description) }
    #expect(services == ["https://b.example", "https://c.example", "https://a.example"])
  }

  @Test func `pins are those of the domain, else those of all`() throws {
    let client = try account.client(place)
    #expect(client.pins() == ["api.example.com": [pin(1), pin(2)], "*": [pin(3)]])
    #expect(client.pins(for: "API.example.com") == [pin(1), pin(2)])
    #expect(client.pins(for: "other.example.com") == [pin(3)])
    #expect(client.pinsJSON() == #"{"api.example.com":["\#(pin(1))","\#(pin(2))"],"*":["\#(pin(3))"]}"#)
    account[\.pins] = []
    account[\.revision] = 2
    _ = client.fetchToken(for: "api.example.com")
    #expect(client.pins(for: "other.example.com") == [])
  }

  @Test func `forced pins are announced until they are read`() throws {
    let client = try account.client(place)
    #expect(client.pins().count == 2)
    account[\.revision] = 2
    account[\.forcedPins] = 2
    #expect(client.fetchToken(for: "api.example.com").isForceApplyPins)
    account.pass(seconds: 300)
    #expect(client.fetchToken(for: "api.example.com").isForceApplyPins)
    _ = client.pinsJSON()
    #expect(!client.fetchToken(for: "api.example.com").isForceApplyPins)
  }

  @Test func `pins that were read at the forced revision need not be read again`() throws {
    account[\.forcedPins] = 1
    let client = try account.client(place)
    #expect(!client.fetchToken(for: "api.example.com").isForceApplyPins)
    _ = client.pins(for: "api.example.com")
    account.pass(seconds: 300)
    #expect(!client.fetchToken(for: "api.example.com").isForceApplyPins)
  }

  @Test func `reading old pins does not clear the flag while the new ones cannot be fetched`() throws {
    let client = try account.client(place)
    _ = client.pins()
    account[\.configurationText] = "x"
    account[\.revision] = 2
    account[\.forcedPins] = 2
    #expect(client.fetchToken(for: "api.example.com").isForceApplyPins)
    _ = client.pins()
    #expect(client.fetchToken(for: "api.example.com").isForceApplyPins)
  }

  @Test func `a result says why the newest configuration and its pins could not be fetched`() throws {
    account.fail(.noConnection)
    let client = try account.client(place)
    func status() -> FetchStatus? {
      account.pass(seconds: 300)
      return client.fetchToken(for: "api.example.com").configurationStatus
    }
    #expect(status() == .noService)
    account[\.failure] = nil
    account[\.configurationFailure] = .timedOut
    let result = client.fetchToken(for: "api.example.com")
    #expect((result.status, result.configurationStatus) == (.success, .poorNetwork))
    // A token that is kept says the same.
    #expect(client.fetchToken(for: "api.example.com").configurationStatus == .poorNetwork)
    account[\.configurationFailure] = nil
    #expect(status() == .success)
    let old = account.configuration()
    account[\.revision] = 2
    for text in ["x", old] {
      account[\.configurationText] = text
      #expect(status() == .noService)
    }
    #expect(client.pins().count == 2)
    account[\.configurationText] = nil
    #expect(status() == .success)
  }

  @Test func `a client that has a configuration knows nothing newer before it asks`() throws {
    _ = try account.client(place)
    account[\.failure] = .carrier(.notStarted(2))
    let client = try account.client(place)
    let result = client.fetchToken(for: "api.example.com")
    #expect((result.status, result.configurationStatus) == (.missingLibraryDependency, nil))
    _ = client.fetchConfig()
    #expect(client.fetchToken(for: "api.example.com").configurationStatus == .missingLibraryDependency)
    // The same revision is announced: there is nothing to fetch.
    account[\.failure] = nil
    #expect(client.fetchToken(for: "api.example.com").configurationStatus == .success)
    #expect(account.bodies(.configuration).count == 2)
  }

  @Test func `the id of this host is that of the last answer, also in the next run`() throws {
    let client = try account.client(place)
    #expect(client.deviceID == nil)
    _ = client.fetchToken(for: "api.example.com")
    #expect(client.deviceID == base64(TestAccount.deviceID))
    account.fail(.noConnection)
    #expect(try account.client(place).deviceID == base64(TestAccount.deviceID))
  }

  @Test func `a line about account, versions and host can be logged first`() throws {
    let lines = Mutex<[String]>([])
    let options = ClientOptions(log: { line in lines.withLock { $0.append(line) } })
    let client = try account.client(place, options: options)
    #expect(lines.withLock { $0.count } == 1)
    #expect(lines.withLock { $0[0] }.hasSuffix("device none"))
    account.fail(.refused, status: 403, reasons: ["debugger"], code: "KLMNOPQRST")
    _ = client.fetchToken(for: "api.example.com")
    #expect(lines.withLock { $0.last } == "holdfast: token for api.example.com: rejected (debugger), code KLMNOPQRST")
  }
}

/// Signatures over messages.
@Suite struct MessageTests {
  private let place: TemporaryFolder
  private let account: TestAccount
  private let client: HoldfastClient

  init() throws {
    place = try TemporaryFolder(in: memoryFolder)
    account = try TestAccount()
    client = try account.client(place)
  }

  @Test func `messages are signed with the account's key after a fetch`() {
    #expect(client.messageSignature(of: "hello") == nil)
    _ = client.fetchToken(for: "api.example.com")
    #expect(client.messageSignature(of: "hello") == "NNOUwvfVPKEL7mtIES5hyoaPkfgLluUIacWMFc9nA9M=")
  }

  @Test func `after a refusal the signature is wrong, and another one each time`() {
    account.fail(.refused, status: 403, reasons: ["debugger"])
    _ = client.fetchToken(for: "api.example.com")
    let first = client.messageSignature(of: "hello")
    #expect(first?.utf8.count == 44 && first != "NNOUwvfVPKEL7mtIES5hyoaPkfgLluUIacWMFc9nA9M=")
    #expect(client.messageSignature(of: "hello") == first)
    _ = client.fetchToken(for: "api.example.com")
    #expect(client.messageSignature(of: "hello") != first)
    account[\.failure] = nil
    _ = client.fetchToken(for: "api.example.com")
    #expect(client.messageSignature(of: "hello") == "NNOUwvfVPKEL7mtIES5hyoaPkfgLluUIacWMFc9nA9M=")
  }

  @Test func `an account without the feature has no signatures, also after a refusal`() throws {
    account[\.features.messages] = false
    account[\.revision] = 2
    _ = client.fetchToken(for: "api.example.com")
    #expect(client.messageSignature(of: "hello") == nil)
    account.fail(.refused, status: 403, reasons: ["debugger"])
    account[\.checks] = 2
    #expect(client.fetchToken(for: "api.example.com").status == .rejected)
    #expect(client.messageSignature(of: "hello") == nil)
  }

  @Test func `the key of the installation is made once, for this user only, and its signatures verify`() throws {
    let text = try client.installationPublicKey()
    let point = try PublicKeyJWK(json: Array(text.utf8)).point
    let later = try account.client(place)
    #expect(try later.installationPublicKey() == text)
    let encoded = Array(try later.installationSignature(of: Array("hello".utf8)).utf8)
    var buffer = ByteBuffer<64>()
    try buffer.append(paddedBase64: encoded.span)
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    let message = Array("hello".utf8)
    hash.append(message.span)
    let signature = FixedBytes<64>(buffer.bytes) ?? FixedBytes()
    try cryptography.p256Verify(key: point, digest: hash.finish(), signature: signature)
    let id = try Files.names(inFolder: place.file("app/accounts"), limit: 2)[0]
    #expect(try place.mode("app/accounts/\(id)/installation.key") == 0o600)
    #expect(try TestAccount().client(at: place.file("app")).installationPublicKey() != text)
  }

  @Test func `a damaged key of the installation is not replaced`() throws {
    _ = try client.installationPublicKey()
    let id = try Files.names(inFolder: place.file("app/accounts"), limit: 2)[0]
    let path = place.file("app/accounts/\(id)/installation.key")
    for bad in [[], [UInt8](repeating: 0, count: 32), [UInt8](repeating: 1, count: 33)] {
      try Files.writeFileAtomically(bad, at: path, overwrite: true)
      #expect(throws: ClientError.self) { try client.installationPublicKey() }
      #expect(try Files.readFile(at: path, limit: 64) == bad)
    }
  }

  @Test func `the nonces of sessions are refused`() {
    let nonce = [0x80] + [UInt8](repeating: 0, count: 15)
    for proof in [client.integrityMeasurementProof(nonce:measurementConfig:), client.deviceMeasurementProof] {
      let error = #expect(throws: ClientError.self) { try proof(nonce, []) }
      guard case .reservedNonce = error else { return #expect(Bool(false)) }
      let other = #expect(throws: ClientError.self) { try proof([0], []) }
      guard case .measurement(.nonceLength) = other else { return #expect(Bool(false)) }
    }
  }
}
