import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// The encoding of pages of the audit log, and the messages about them.
@Suite struct AuditPageTests {
  private let base = AuditChain(count: 7, head: Digest(filledWith: 1))
  private let end = AuditChain(count: 900, head: Digest(filledWith: 2))

  private func secret(_ byte: UInt8 = 1, device: UInt8 = 2, home: UInt8 = 3) -> AuditPageSecret {
    AuditPageSecret(
      secret32([UInt8](repeating: byte, count: 32)), device: DeviceID(filledWith: device),
      home: KeyID(filledWith: home))
  }

  private func secret32(_ bytes: [UInt8]) -> Secret<32> { Secret<32>(copying: bytes.span)! }

  private func page(entries count: Int, of byteCount: Int = 20) -> AuditPage {
    var page = AuditPage(after: base, of: end, cut: 3)
    for _ in 0..<count {
      let isTaken = page.append([UInt8](repeating: 0x40, count: byteCount))
      #expect(isTaken)
    }
    return page
  }

  private func sealed(_ page: AuditPage, random: UInt8 = 9) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    return try secret().seal(page, random: FixedBytes<16>(filledWith: random), using: &cryptography)
  }

  @Test(arguments: [0, 1, 7, 8, 9, 100]) func `a page that is opened is the page that was sealed`(count: Int) throws {
    var cryptography = OpenSSLCryptography()
    let page = page(entries: count)
    let sealed = try sealed(page)
    #expect((sealed.count - 32) % 256 == 0)
    #expect(try secret().open(sealed.span, using: &cryptography) == page)
  }

  @Test func `another secret, device or home opens nothing`() throws {
    var cryptography = OpenSSLCryptography()
    let sealed = try sealed(page(entries: 2))
    #expect(throws: CryptographyFailure.self) { try secret(9).open(sealed.span, using: &cryptography) }
    #expect(throws: CryptographyFailure.self) { try secret(device: 9).open(sealed.span, using: &cryptography) }
    #expect(throws: CryptographyFailure.self) { try secret(home: 9).open(sealed.span, using: &cryptography) }
  }

  @Test func `a page takes entries until its message would be longer than 4096 bytes`() throws {
    var page = page(entries: 0)
    var count = 0
    while count < 1000, page.append([UInt8](repeating: 0x40, count: 100)) { count += 1 }
    #expect(page.entries.count == count)
    #expect(count > 30)
    var message: [UInt8] = []
    PageAnswer(try sealed(page)).encode(into: &message)
    #expect(message.count <= 4096)
    #expect(message.count > 4096 - 256)
    let isTaken = page.append([UInt8](repeating: 0, count: 5000))
    #expect(!isTaken)
    #expect(page.entries.count == count)
  }

  @Test func `different texts have different salts even if the random source repeats itself`() throws {
    let salts = try [page(entries: 1), page(entries: 2), page(entries: 0)].map { Array(try sealed($0).prefix(16)) }
    #expect(Set(salts).count == 3)
    #expect(try sealed(page(entries: 1)) == sealed(page(entries: 1)))
    #expect(try sealed(page(entries: 1)).prefix(16) != sealed(page(entries: 1), random: 10).prefix(16))
  }

  @Test func `the length of a page says nothing but the number of 256 bytes`() throws {
    #expect(try sealed(page(entries: 1)).count == sealed(page(entries: 5)).count)
  }

  @Test func `a text with other padding, another order or too many entries is no page`() throws {
    let text = try opened(sealed(page(entries: 1)))
    #expect(try AuditPage(text.span) == page(entries: 1))
    var padded = text
    padded[text.count - 1] = 1
    for bad in [padded, text + [UInt8](repeating: 0, count: 256), Array(text.dropLast()), []] {
      #expect(throws: EncodingFault.self) { try AuditPage(bad.span) }
    }
    var crowded = AuditPage(after: AuditChain(count: 899, head: Digest()), of: end, cut: 0)
    for _ in 0..<2 { _ = crowded.append([0]) }
    let sealedCrowd = try sealed(crowded)
    var cryptography = OpenSSLCryptography()
    #expect(throws: CryptographyFailure.self) { try secret().open(sealedCrowd.span, using: &cryptography) }
    let cut = try sealed(AuditPage(after: base, of: end, cut: 8))
    #expect(throws: CryptographyFailure.self) { try secret().open(cut.span, using: &cryptography) }
  }

  /// The text of a sealed page.
  private func opened(_ sealed: [UInt8]) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    let ids = [UInt8](repeating: 2, count: 16) + [UInt8](repeating: 3, count: 8)
    let info = Array("holdfast/1 audit page".utf8) + [0] + ids
    var key = [UInt8](repeating: 0, count: 32)
    var keyBytes = key.mutableSpan
    let shared = [UInt8](repeating: 1, count: 32)
    try cryptography.hkdfSHA256(
      inputKey: shared.span, salt: sealed.span.extracting(first: 16), info: info.span,
      into: &keyBytes)
    let tag = AuthenticationTag(sealed.span.extracting(last: 16))
    var text = Array(sealed[16..<sealed.count - 16])
    var message = text.mutableSpan
    try cryptography.aes256GCMOpen(
      key: secret32(key), nonce: FixedBytes<12>().bytes, authenticating: Span(), message: &message,
      tag: try #require(tag))
    return text
  }

  @Test func `messages about pages and receipts are read strictly`() throws {
    var request: [UInt8] = []
    MailMessage.encode(.page(from: 5), into: &request)
    #expect(request == [0x82, 0x09, 0x05])
    #expect(try MailMessage(request.span)?.kind == .page(from: 5))
    for bad in [[0x81, 0x09], [0x82, 0x09], [0x82, 0x09, 0xf6], [0x82, 0x09, 0x40], [0x82, 0x09, 0x05, 0x00]]
      as [[UInt8]]
    {
      #expect(throws: EncodingFault.self) { try MailMessage(bad.span) != nil }
    }
    var receipt: [UInt8] = []
    let ones = [UInt8](repeating: 1, count: 257)
    MailMessage.encode(.receipt, ones.span.extracting(first: 256), into: &receipt)
    #expect(try MailMessage(receipt.span)?.kind == .receipt)
    var tooLong: [UInt8] = []
    MailMessage.encode(.receipt, ones.span, into: &tooLong)
    #expect(throws: EncodingFault.tooLong) { try MailMessage(tooLong.span) != nil }
    let none: [UInt8] = [0x82, 0x0a, 0xf6]
    #expect(try PageAnswer(none.span).sealed == nil)
    for bad in [[0x82, 0x0a, 0x40], [0x82, 0x08, 0xf6], [0x83, 0x0a, 0xf6, 0xf6], [0x82, 0x0a, 0xf6, 0x00]]
      as [[UInt8]]
    {
      #expect(throws: EncodingFault.self) { try PageAnswer(bad.span) }
    }
  }

  @Test func `rounds without transport and version, of earlier versions, are read and written as they were`() throws {
    for user in [nil, BoundedText<32>("ann")] {
      var round = AuditedRound(
        status: .accepted, command: BoundedText("unlock"), verifyingKey: KeyID(filledWith: 1),
        tokenID: TokenID(filledWith: 2), subject: BoundedText("app"), isCompatibility: false, user: user)
      for origin in [
        nil, RoundOrigin(transport: nil, version: .zero),
        RoundOrigin(transport: .lowEnergy, version: AppVersion(major: 1, minor: 2, patch: 3)),
      ] {
        round.origin = origin
        let entry = AuditEntry(sequence: 5, time: testTime, event: .round(round))
        var bytes: [UInt8] = []
        entry.encode(into: &bytes)
        #expect(try AuditEntry(bytes.span) == entry)
      }
    }
  }
}
