import HoldfastFormats
import HoldfastLinux
import HoldfastOnline
import HoldfastSDK
import PowerCut
import TestSupport
import Testing

/// The account's texts, and the definitions of this host.
@Suite struct SecureStringTests {
  private let place: TemporaryFolder
  private let account: TestAccount

  init() throws {
    place = try TemporaryFolder(in: memoryFolder)
    account = try TestAccount()
    account[\.strings] = [("api-key", "s3cret"), ("größe", "ß")]
  }

  private func names(_ prefix: String) throws -> [String] {
    let id = try Files.names(inFolder: place.file("app/accounts"), limit: 2)
    return try Files.names(inFolder: place.file("app/accounts/\(id[0])"), limit: 20).filter { $0.hasPrefix(prefix) }
  }

  private func path(_ name: String) throws -> String {
    let id = try Files.names(inFolder: place.file("app/accounts"), limit: 2)
    return place.file("app/accounts/\(id[0])/\(name)")
  }

  @Test func `texts are fetched together, and given for an hour without asking`() throws {
    let client = try account.client(place)
    let first = client.fetchSecureString("api-key")
    #expect((first.status, first.secureString, first.arc) == (.success, "s3cret", "ABCDEFGHIJ"))
    #expect(first.token == "")
    #expect(!first.loggableToken.contains("s3cret"))
    account.pass(seconds: 3599)
    #expect(client.fetchSecureString("größe").secureString == "ß")
    #expect(client.fetchSecureString("other").status == .unknownKey)
    #expect(account.bodies(.fetch).count == 1)
    account.pass(seconds: 1)
    #expect(client.fetchSecureString("api-key").status == .success)
    #expect(account.bodies(.fetch).count == 2)
  }

  @Test func `a later process has them, for a day without a network, and never as plain text on the disk`() throws {
    #expect(try account.client(place).fetchSecureString("api-key").status == .success)
    let bytes = try Files.readFile(at: path("strings.sealed"), limit: 1 << 16)
    #expect(!String(decoding: bytes, as: UTF8.self).contains("s3cret"))
    account.fail(.noConnection)
    account.pass(seconds: 86_399)
    let later = try account.client(place)
    #expect(later.fetchSecureString("api-key").secureString == "s3cret")
    account.pass(seconds: 1)
    #expect(later.fetchSecureString("api-key").status == .noService)
    #expect(try account.client(place).fetchSecureString("api-key").status == .noService)
  }

  @Test func `a clock that goes back makes no text younger within a start of the machine`() throws {
    #expect(try account.client(place).fetchSecureString("api-key").status == .success)
    account.fail(.noConnection)
    account.world.withLock { $0.bootSeconds += 86_400 }
    #expect(try account.client(place).fetchSecureString("api-key").status == .noService)
    account[\.bootID] = "boot-2"
    #expect(try account.client(place).fetchSecureString("api-key").status == .success)
    account[\.unixSeconds] = 1_799_999_999
    #expect(try account.client(place).fetchSecureString("api-key").status == .noService)
    account[\.unixSeconds] = nil
    #expect(try account.client(place).fetchSecureString("api-key").status == .noService)
  }

  @Test func `without a network, an app or host that measures otherwise gets nothing`() throws {
    #expect(try account.client(place).fetchSecureString("api-key").status == .success)
    let running = try account.client(place)
    #expect(running.fetchSecureString("api-key").status == .success)
    account.fail(.noConnection)
    account[\.measurement] = 2
    #expect(running.fetchSecureString("api-key").status == .noService)
    #expect(try account.client(place).fetchSecureString("api-key").status == .noService)
    account[\.measurement] = 1
    account[\.secret] = 8
    #expect(try account.client(place).fetchSecureString("api-key").status == .noService)
    account[\.secret] = 7
    #expect(try account.client(place).fetchSecureString("api-key").status == .success)
    account[\.cannotMeasure] = true
    #expect(try account.client(place).fetchSecureString("api-key").status == .internalError)
  }

  @Test func `a refusal removes them`() throws {
    let client = try account.client(place)
    #expect(client.fetchSecureString("api-key").status == .success)
    account.fail(.refused, status: 403, reasons: ["debugger"])
    #expect(client.fetchToken(for: "api.example.com").status == .rejected)
    #expect(try names("strings") == [])
    account.fail(.noConnection)
    #expect(client.fetchSecureString("api-key").status == .noService)
  }

  @Test func `a definition of this host comes first, stays here, and is removed by an empty text`() throws {
    let client = try account.client(place)
    #expect(client.fetchSecureString("api-key", newDefinition: "local").secureString == "local")
    #expect(client.fetchSecureString("mine", newDefinition: "only here").secureString == "only here")
    #expect(!account.bodies(.fetch).contains { String(decoding: $0.compact(), as: UTF8.self).contains("local") })
    let bytes = try Files.readFile(at: path("definitions.sealed"), limit: 1 << 16)
    #expect(!String(decoding: bytes, as: UTF8.self).contains("only here"))
    // It stays after an update of the app.
    account[\.measurement] = 2
    let later = try account.client(place)
    #expect(later.fetchSecureString("mine").secureString == "only here")
    #expect(later.fetchSecureString("api-key").secureString == "local")
    let removed = later.fetchSecureString("api-key", newDefinition: "")
    #expect((removed.status, removed.secureString) == (.success, "s3cret"))
    let gone = later.fetchSecureString("mine", newDefinition: "")
    #expect((gone.status, gone.secureString) == (.success, nil))
    #expect(later.fetchSecureString("mine").status == .unknownKey)
  }

  @Test func `definitions that cannot be read are not replaced by a new one`() throws {
    let client = try account.client(place)
    #expect(client.fetchSecureString("mine", newDefinition: "first").status == .success)
    let whole = try Files.readFile(at: path("definitions.sealed"), limit: 1 << 16)
    var changed = whole
    changed[20] ^= 1
    for bytes in [changed, [], Array(whole.dropLast())] {
      try Files.writeFileAtomically(bytes, at: path("definitions.sealed"), overwrite: true)
      #expect(client.fetchSecureString("other", newDefinition: "second").status == .internalError)
      #expect(try Files.readFile(at: path("definitions.sealed"), limit: 1 << 16) == bytes)
    }
    try Files.writeFileAtomically(whole, at: path("definitions.sealed"), overwrite: true)
    #expect(client.fetchSecureString("other", newDefinition: "second").status == .success)
    #expect(client.fetchSecureString("mine").secureString == "first")
  }

  @Test func `a definition is given only after an attestation`() throws {
    #expect(try account.client(place).fetchSecureString("mine", newDefinition: "x").status == .success)
    account.fail(.refused, status: 403, reasons: ["debugger"])
    account.pass(seconds: 3600)
    let client = try account.client(place)
    #expect(client.fetchSecureString("mine").status == .rejected)
    #expect(client.fetchSecureString("mine", newDefinition: "y").status == .rejected)
    account[\.failure] = nil
    #expect(client.fetchSecureString("mine").secureString == "x")
  }

  @Test func `a feature that is off is disabled`() throws {
    account.fail(.refused, status: 403, reasons: ["disabledFeature"])
    let client = try account.client(place)
    #expect(client.fetchSecureString("api-key").status == .disabled)
    #expect(client.fetchCustomJWT(payload: "{}").status == .disabled)
  }

  @Test(arguments: [
    "", "a\u{0}", "a\n", "\u{85}", String(repeating: "x", count: 65), String(repeating: "é", count: 33),
  ])
  func `what is no name is a bad key`(name: String) throws {
    #expect(try account.client(place).fetchSecureString(name).status == .badKey)
    #expect(account.bodies(.fetch).isEmpty)
  }

  @Test func `names that only look the same are different`() throws {
    account[\.strings] = [("\u{e9}", "composed"), ("e\u{301}", "decomposed")]
    let client = try account.client(place)
    #expect(client.fetchSecureString("\u{e9}").secureString == "composed")
    #expect(client.fetchSecureString("e\u{301}").secureString == "decomposed")
    _ = client.fetchSecureString("\u{e9}", newDefinition: "mine")
    #expect(client.fetchSecureString("e\u{301}").secureString == "decomposed")
  }

  @Test func `neither a text nor a token is in the description of a result`() throws {
    let client = try account.client(place)
    let (text, token) = (client.fetchSecureString("api-key"), client.fetchToken(for: "api.example.com"))
    let signature = try #require(token.token.split(separator: ".").last)
    var dumped = "\(text) \(token)" + String(reflecting: [text, token])
    dump([text, token], to: &dumped)
    #expect(!dumped.contains("s3cret") && !dumped.contains(signature))
  }

  @Test func `limits of names and definitions`() throws {
    let client = try account.client(place)
    let longest = String(repeating: "é", count: 32)
    let text = String(repeating: "é", count: 2048)
    #expect(client.fetchSecureString(longest, newDefinition: text).secureString == text)
    #expect(client.fetchSecureString("x", newDefinition: text + "x").status == .badKey)
  }

  @Test func `a file that was changed, cut or exchanged is none`() throws {
    let client = try account.client(place)
    #expect(client.fetchSecureString("mine", newDefinition: "x").status == .success)
    account.fail(.noConnection)
    for name in ["strings.sealed", "definitions.sealed"] {
      let path = try path(name)
      let good = try Files.readFile(at: path, limit: 1 << 16)
      let other = try Files.readFile(
        at: self.path(name == "strings.sealed" ? "definitions.sealed" : "strings.sealed"), limit: 1 << 16)
      for bad in [[], Array(good.dropLast()), good + [0], [2] + good.dropFirst(), good.map { $0 ^ 1 }, other] {
        try Files.writeFileAtomically(bad, at: path, overwrite: true)
        let found = try account.client(place).fetchSecureString("mine")
        #expect(found.status == (name == "strings.sealed" ? .noService : .unknownKey))
      }
      try Files.writeFileAtomically(good, at: path, overwrite: true)
      #expect(try account.client(place).fetchSecureString("mine").secureString == "x")
    }
  }

  @Test func `two clients of one folder lose no definition`() throws {
    let (one, two) = (try account.client(place), try account.client(place))
    for number in 0..<10 {
      #expect(
        (number % 2 == 0 ? one : two).fetchSecureString("n\(number)", newDefinition: "\(number)").status == .success)
    }
    for number in 0..<10 { #expect(one.fetchSecureString("n\(number)").secureString == "\(number)") }
  }
}
