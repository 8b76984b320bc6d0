import Foundation
import HoldfastCore
import HoldfastOpenSSL
import HoldfastSDK
import PowerCut
import TestSupport
import Testing

/// The check of other servers' certificates, with chains that openssl made.
@Suite struct ServerTests {
  private let place: TemporaryFolder
  private let account: TestAccount
  private let chain: TestChain

  init() throws {
    place = try TemporaryFolder(in: memoryFolder)
    account = try TestAccount()
    chain = try TestChain(in: place)
    account[\.unixSeconds] = UInt64(Date().timeIntervalSince1970) + 60
  }

  private func check(
    _ host: String = "api.example.com", _ names: [String] = ["leaf", "middle"], pinned: [String] = [],
    authorities: String? = nil
  ) throws {
    account[\.pins] =
      pinned.isEmpty ? [] : [("api.example.com", ["sha256//" + pin(1)] + pinned), ("*", ["sha256//" + pin(3)])]
    account[\.revision] += 1
    let client = try account.client(place)
    _ = client.fetchConfig()
    try client.checkServer(
      host, certificates: try names.map { try chain.certificate($0) },
      authorities: authorities ?? place.file("root.pem"))
  }

  private func refusal(_ body: () throws -> Void) -> ServerCertificateFault? {
    #expect(throws: ServerCertificateFault.self) { try body() }
  }

  @Test func `a chain to a trusted authority is good for its names`() throws {
    try check()
    try check("API.example.com")
    try check("127.0.0.1")
    // Certificates that are not needed, and their order after the first, do not matter.
    try check("api.example.com", ["leaf", "root", "middle"])
  }

  @Test func `any key of the verified chain may be the pinned one`() throws {
    for name in ["leaf", "middle", "root"] { try check(pinned: [try chain.pin(name)]) }
  }

  @Test func `a chain without a pinned key is refused`() throws {
    #expect(refusal { try check(pinned: ["sha256//" + pin(2)]) } == .wrongPin)
    // The server sends the certificate of the pinned key along, but it is not in the verified chain.
    let other = try chain.pin("other")
    #expect(refusal { try check("api.example.com", ["leaf", "middle", "other"], pinned: [other]) } == .wrongPin)
    // The pins of * count for a host without its own.
    #expect(refusal { try check("127.0.0.1", pinned: [try chain.pin("leaf")]) } == .wrongPin)
  }

  @Test func `another name is refused`() {
    for host in ["example.com", "b.example.com", "127.0.0.2", "api.example.com.", "::1"] {
      #expect(refusal { try check(host) } == .anotherName, "\(host)")
    }
  }

  @Test func `a chain is good only in its time`() throws {
    account[\.unixSeconds] = UInt64(Date().timeIntervalSince1970) + 40 * 86_400
    #expect(refusal { try check() } == .expired)
    account[\.unixSeconds] = UInt64(Date().timeIntervalSince1970) - 86_400
    #expect(refusal { try check() } == .expired)
    account[\.unixSeconds] = nil
    #expect(refusal { try check() } == .noClock)
  }

  @Test func `a chain that does not lead to a trusted authority is refused`() throws {
    #expect(refusal { try check("api.example.com", ["leaf"]) } == .untrusted)
    #expect(refusal { try check("api.example.com", ["root"]) } == .untrusted)
    #expect(refusal { try check(authorities: place.file("other.pem")) } == .untrusted)
    // A certificate for clients, and one that the server's own key has signed.
    #expect(refusal { try check("api.example.com", ["client", "middle"]) } == .untrusted)
    #expect(refusal { try check("api.example.com", ["below", "leaf", "middle"]) } == .untrusted)
  }

  @Test func `a file of authorities that cannot be used is named`() throws {
    #expect(refusal { try check(authorities: place.file("none.pem")) } == .badAuthorities)
    try place.makeFile("empty.pem")
    #expect(refusal { try check(authorities: place.file("empty.pem")) } == .badAuthorities)
  }

  @Test func `what is not a chain is malformed`() throws {
    let client = try account.client(place)
    let leaf = try chain.certificate("leaf")
    for certificates in [
      [], [[]], [Array(repeating: 0x30, count: 100)], [leaf + [0]], [Array(leaf.dropLast())], [leaf, []],
      Array(repeating: leaf, count: 11), [Array(repeating: 0x30, count: 32_769)],
    ] {
      #expect(
        refusal {
          try client.checkServer("api.example.com", certificates: certificates, authorities: place.file("root.pem"))
        } == .malformed)
    }
    for host in ["", "a b", "a\0b", "ä.example", String(repeating: "a", count: 254)] {
      #expect(refusal { try client.checkServer(host, certificates: [leaf]) } == .malformedHost)
    }
  }
}

/// Certificates that openssl makes: a root, an authority below it, and end certificates.
private struct TestChain {
  private let place: TemporaryFolder

  init(in place: TemporaryFolder) throws {
    self.place = place
    try place.makeFile("openssl.cnf", Array("[req]\ndistinguished_name=dn\n[dn]\n".utf8))
    let authority = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"]
    let server = ["basicConstraints=CA:FALSE", "subjectAltName=DNS:api.example.com,IP:127.0.0.1"]
    try make("root", by: nil, authority)
    try make("other", by: nil, authority)
    try make("middle", by: "root", authority)
    try make("leaf", by: "middle", server + ["extendedKeyUsage=serverAuth"])
    try make("client", by: "middle", server + ["extendedKeyUsage=clientAuth"])
    try make("below", by: "leaf", server)
  }

  private func make(_ name: String, by issuer: String?, _ extensions: [String]) throws {
    var arguments = [
      "req", "-x509", "-config", "openssl.cnf", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
      "-keyout", "\(name).key", "-out", "\(name).pem", "-days", "30", "-subj", "/CN=\(name)",
    ]
    for text in extensions { arguments += ["-addext", text] }
    if let issuer { arguments += ["-CA", "\(issuer).pem", "-CAkey", "\(issuer).key"] }
    try openssl(arguments)
    try openssl(["x509", "-in", "\(name).pem", "-outform", "DER", "-out", "\(name).der"])
    try openssl(["pkey", "-in", "\(name).key", "-pubout", "-outform", "DER", "-out", "\(name).spki"])
  }

  private func openssl(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/openssl")
    process.arguments = arguments
    process.currentDirectoryURL = URL(filePath: place.path)
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "openssl \(arguments)")
  }

  func certificate(_ name: String) throws -> [UInt8] { try place.contents("\(name).der") }

  func pin(_ name: String) throws -> String {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    let key = try place.contents("\(name).spki")
    hash.append(key.span)
    let digest: Digest = try hash.finish()
    return "sha256//" + base64([UInt8](digest.bytes))
  }
}
