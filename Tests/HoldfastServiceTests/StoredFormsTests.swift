import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastService
import HoldfastStorage
import TestSupport
import Testing

/// The values that the service derives and keeps, computed a second time from their documented forms: a later version of the service has to
/// find them again.
@Suite struct StoredFormsTests {
  private let test: TestFleet

  init() throws { test = try TestFleet(.sqlite) }

  /// The rows of a table in a backup, with the columns of its statement.
  private func rows(of table: String) throws -> [[Value]] {
    var rows: [[Value]] = []
    var isInside = false
    for record in try Backup(of: test.fleet).records() {
      if case .table(let name) = record { isInside = name == table }
      if case .row(let values) = record, isInside { rows.append(values) }
    }
    return rows
  }

  private func digest(_ domain: String, _ bytes: [UInt8]) throws -> [UInt8] {
    let message = Array(domain.utf8) + [0] + bytes
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(message.span)
    let digest: Digest = try hash.finish()
    return digest.bytes.array
  }

  private func hmac(_ key: [UInt8], _ message: [UInt8]) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    var mac = try cryptography.hmacSHA256(key: key.span)
    mac.append(message.span)
    let code: MAC = try mac.finish()
    return code.bytes.array
  }

  /// Opens what the service sealed with its key: nonce, ciphertext and tag.
  private func opened(_ sealed: [UInt8], _ purpose: String, _ id: [UInt8]) throws -> [UInt8] {
    let data = Array("holdfast/1 service key\0\(purpose)\0".utf8) + id
    var message = Array(sealed[12..<sealed.count - 16])
    var span = message.mutableSpan
    guard let tag = AuthenticationTag(sealed.span.extracting(last: 16)) else { throw CryptographyFailure() }
    var cryptography = OpenSSLCryptography()
    try cryptography.aes256GCMOpen(
      key: secret(TestFleet.serviceKey), nonce: sealed.span.extracting(first: 12), authenticating: data.span,
      message: &span, tag: tag)
    return message
  }

  private func accountKey() throws -> [UInt8] {
    let row = try #require(try rows(of: "keys").first { $0[1] == .text("account") })
    guard case .bytes(let id) = row[0], case .bytes(let sealed) = row[2] else { throw TestRefusal(answer: "\(row)") }
    return try opened(sealed, "account", id)
  }

  @Test func `codes, operators' tokens and evidence are kept as digests with a domain`() throws {
    let token = try test.fleet.addOperator("olga", scopes: [.read], for: nil, by: test.owner)
    let code = try test.invite()
    let evidence = try TestApp(salt: 1).evidence()
    _ = try test.fleet.attest(evidence, for: test.device)
    #expect(try rows(of: "operators").map { $0[1] } == [.bytes(try digest("holdfast/1 operator", Array(token.utf8)))])
    #expect(
      try rows(of: "invitations").map { $0[1] } == [.bytes(try digest("holdfast/1 invitation", Array(code.text.utf8)))])
    let appraisals = try rows(of: "appraisals")
    #expect(appraisals.map { $0[0] } == [.bytes([UInt8](repeating: 1, count: 32))])
    #expect(appraisals.map { $0[1] } == [.bytes(try digest("holdfast/1 appraised evidence", evidence))])
  }

  @Test func `each key is sealed for its purpose and its id`() throws {
    let keys = try rows(of: "keys")
    #expect(keys.count >= 5)
    for row in keys {
      guard case .bytes(let id) = row[0], case .text(let purpose) = row[1], case .bytes(let sealed) = row[2] else {
        throw TestRefusal(answer: "\(row)")
      }
      #expect(try !opened(sealed, purpose, id).isEmpty, "\(purpose)")
      var other = id
      other[0] ^= 1
      #expect(throws: CryptographyFailure.self) { try opened(sealed, purpose, other) }
    }
  }

  @Test func `a backup names the key with which it was made by 16 bytes that are derived from it`() throws {
    let backup = try Backup(of: test.fleet).bytes
    var id = [UInt8](repeating: 0, count: 32)
    var span = id.mutableSpan
    var cryptography = OpenSSLCryptography()
    try cryptography.hkdfSHA256(
      inputKey: TestFleet.serviceKey.span, salt: Span(), info: Array("holdfast/1 service key id".utf8).span,
      into: &span)
    #expect(backup.prefix(24).elementsEqual("holdfast-service/backup1".utf8))
    #expect(backup[24..<40].elementsEqual(id.prefix(16)))
  }

  @Test func `the chunks of a backup are sealed under their numbers from 0, and the last one as the last`() throws {
    var random = SystemRandom()
    let sealing = try BackupSealing.writing(with: ServiceKey(secret(TestFleet.serviceKey)), random: &random)
    let header = sealing.header
    var bytes = [UInt8](repeating: 0, count: 32)
    var span = bytes.mutableSpan
    var cryptography = OpenSSLCryptography()
    try cryptography.hkdfSHA256(
      inputKey: TestFleet.serviceKey.span, salt: header.span.extracting(last: 32),
      info: Array("holdfast/1 backup".utf8).span, into: &span)
    let key: Secret<32> = secret(bytes)
    for number in 0...300 {
      let sealed = try sealing.seal([7, 8, 9], isLast: number == 300)
      let nonce = [UInt8](repeating: 0, count: 9) + [UInt8(number >> 8), UInt8(number & 0xff), number == 300 ? 1 : 0]
      guard let tag = AuthenticationTag(sealed.span.extracting(last: 16)) else { throw CryptographyFailure() }
      var chunk = Array(sealed.prefix(3))
      var message = chunk.mutableSpan
      try cryptography.aes256GCMOpen(
        key: key, nonce: nonce.span, authenticating: header.span, message: &message, tag: tag)
      #expect(chunk == [7, 8, 9])
    }
  }

  @Test func `the keys of domains, messages and decoys follow from the account's key by name and number`() throws {
    let account = try accountKey()
    func key(_ text: String) throws -> [UInt8] { try hmac(account, Array(text.utf8)) }
    try test.addDomain("api.example", [("algorithm", .string("HS256"))])
    try test.setFeatures { $0.messageSigning = true }
    #expect(try test.secretBytes("showDomainSecret", key: "api.example") == key("holdfast/1 domain key\0api.example"))
    _ = try test.perform("rotateDomain", key: "api.example", body: .object([]))
    let second = try test.secretBytes("showDomainSecret", key: "api.example")
    #expect(try second == key("holdfast/1 domain key\0api.example\u{0}2"))
    #expect(try test.secretBytes("showMessageSecret") == key("holdfast/1 message signing\u{0}1"))
    var policy = try #require(try test.perform("showPolicy").members)
    policy.append(("decoy_tokens", .bool(true)))
    _ = try test.perform("setPolicy", body: .object([("policy", .object(policy))]))
    let bad = TestApp(salt: 1, image: [UInt8](repeating: 9, count: 32))
    let decoy = try test.fetched(bad) { $0.domain = "api.example" }
    let messageKey = try #require(decoy["message_key"]?.text.flatMap { Schema.base64Bytes($0) })
    #expect(try messageKey == key("holdfast/1 decoy\u{0}1\0"))
    let parts = try #require(decoy["token"]?.text).split(separator: ".")
    let signature = try hmac(key("holdfast/1 decoy\u{0}2\0api.example"), Array("\(parts[0]).\(parts[1])".utf8))
    #expect(base64URL(signature.span) == String(parts[2]))
    #expect(try rows(of: "counters").contains { $0[1] == .text("decoys") && $0[3] == .integer(1) })
  }

  @Test func `refusals are counted by the hour in which they come`() throws {
    _ = try test.enrol(TestApp(salt: 1), invitation: InvitationCode("AAAAA-AAAAA-AAAAA-AAAAA"))
    let hours = try rows(of: "counters").map { $0[0] }
    #expect(!hours.isEmpty && hours.allSatisfy { $0 == .integer(Int64(TestFleet.now / 3600 * 3600)) })
  }
}
