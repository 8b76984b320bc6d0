import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

@Suite struct OpenSSLCryptographyTests {
  @Test func `SHA-256 of abc is the published digest`() throws {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append("a")
    hash.append("bc")
    #expect(
      (try hash.finish() as Digest).bytes.array
        == hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
  }

  @Test(arguments: [
    (
      "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    ),
    (
      String(repeating: "aa", count: 131),
      "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579204669727374",
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    ),
  ])
  func `HMAC-SHA-256 gives the answers of RFC 4231`(key: String, message: String, expected: String) throws {
    var cryptography = OpenSSLCryptography()
    for split in [0, 1, 7] {
      var mac = try cryptography.hmacSHA256(key: hex(key).span)
      let message = hex(message)
      mac.append(message.span.extracting(first: split))
      mac.append(message.span.extracting(droppingFirst: split))
      #expect((try mac.finish() as MAC).bytes.array == hex(expected))
    }
  }

  @Test(arguments: [
    (
      "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9",
      "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    ),
    (
      "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "", "",
      "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
    ),
  ])
  func `HKDF-SHA-256 gives the answers of RFC 5869, one after the other`(
    inputKey: String, salt: String, info: String, expected: String
  ) throws {
    var cryptography = OpenSSLCryptography()
    for _ in 0..<2 {
      var output = [UInt8](repeating: 0, count: 42)
      var span = output.mutableSpan
      try cryptography.hkdfSHA256(
        inputKey: hex(inputKey).span, salt: hex(salt).span, info: hex(info).span, into: &span)
      #expect(output == hex(expected))
    }
  }

  @Test(arguments: [0, 1, 31, 32, 33, 64, 65, 8160, 8161], [0, 32, 65])
  func `HKDF-SHA-256 is that of libcrypto for every length, and refuses the same`(count: Int, saltCount: Int) throws {
    let (key, salt) = ([UInt8](0..<80), [UInt8](repeating: 0x5a, count: saltCount))
    let info = Array("info".utf8)
    func derived(_ derive: (inout MutableSpan<UInt8>) throws -> Void) -> [UInt8]? {
      var output = [UInt8](repeating: 0, count: count)
      var span = output.mutableSpan
      do { try derive(&span) } catch { return nil }
      return output
    }
    var cryptography = OpenSSLCryptography()
    let ours = derived { try cryptography.hkdfSHA256(inputKey: key.span, salt: salt.span, info: info.span, into: &$0) }
    let theirs = derived {
      try HKDF.derive(hash: .sha256, inputKey: key.span, salt: salt.span, info: info.span, into: &$0)
    }
    #expect(ours == theirs && (ours == nil) == (count == 0 || count == 8161))
  }

  @Test func `AES-256-GCM seals and opens test case 16 of the GCM specification`() throws {
    var cryptography = OpenSSLCryptography()
    let key = Secret<32>(copying: hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308").span)!
    let nonce = hex("cafebabefacedbaddecaf888")
    let data = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
    let plain = hex(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657"
        + "ba637b39")
    var message = plain
    var tag = AuthenticationTag()
    var span = message.mutableSpan
    try cryptography.aes256GCMSeal(key: key, nonce: nonce.span, authenticating: data.span, message: &span, tag: &tag)
    #expect(
      message
        == hex(
          "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0a"
            + "bcc9f662"))
    #expect(tag.bytes.array == hex("76fc6ece0f4e1768cddf8853bb2d551b"))
    span = message.mutableSpan
    try cryptography.aes256GCMOpen(key: key, nonce: nonce.span, authenticating: data.span, message: &span, tag: tag)
    #expect(message == plain)
  }

  @Test func `an empty message under a flipped tag is refused, and the next one opens`() throws {
    var cryptography = OpenSSLCryptography()
    let key = Secret<32>()
    let nonce = [UInt8](repeating: 0, count: 12)
    var tag = AuthenticationTag(hex("530f8afbc74536b9a963b4f1c4cb738b").span)!
    let nothing: [UInt8] = []
    var message = nothing
    var span = message.mutableSpan
    try cryptography.aes256GCMOpen(key: key, nonce: nonce.span, authenticating: nothing.span, message: &span, tag: tag)
    tag[15] ^= 1
    do throws(CryptographyFailure) {
      var span = message.mutableSpan
      try cryptography.aes256GCMOpen(
        key: key, nonce: nonce.span, authenticating: nothing.span, message: &span, tag: tag)
      Issue.record("opened")
    } catch {}
    tag[15] ^= 1
    span = message.mutableSpan
    try cryptography.aes256GCMOpen(key: key, nonce: nonce.span, authenticating: nothing.span, message: &span, tag: tag)
  }

  @Test(arguments: [0, 11, 13, 16]) func `a nonce of another length than twelve is refused`(count: Int) {
    var cryptography = OpenSSLCryptography()
    let key = Secret<32>()
    let nonce = [UInt8](repeating: 0, count: count)
    var tag = AuthenticationTag()
    var message: [UInt8] = [1, 2, 3]
    do throws(CryptographyFailure) {
      var span = message.mutableSpan
      try cryptography.aes256GCMSeal(
        key: key, nonce: nonce.span, authenticating: Span(), message: &span, tag: &tag)
      Issue.record("sealed")
    } catch {}
    do throws(CryptographyFailure) {
      var span = message.mutableSpan
      try cryptography.aes256GCMOpen(key: key, nonce: nonce.span, authenticating: Span(), message: &span, tag: tag)
      Issue.record("opened")
    } catch {}
  }

  @Test func `what does not open is wiped`() {
    var cryptography = OpenSSLCryptography()
    let key = Secret<32>()
    let nonce = FixedBytes<12>()
    var message: [UInt8] = [1, 2, 3]
    do throws(CryptographyFailure) {
      var span = message.mutableSpan
      try cryptography.aes256GCMOpen(
        key: key, nonce: nonce.bytes, authenticating: Span(), message: &span, tag: AuthenticationTag())
      Issue.record("opened")
    } catch {}
    #expect(message == [0, 0, 0])
  }

  @Test func `AES-256 unwraps the 256-bit key of RFC 3394, and refuses it with a bit flipped`() throws {
    var cryptography = OpenSSLCryptography()
    let wrappingKey = Secret<32>(copying: hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f").span)!
    var wrapped = hex("28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21")
    var key = Secret<32>()
    try cryptography.aes256KeyUnwrap(wrappingKey: wrappingKey, wrapped: wrapped.span, into: &key)
    let bytes = key.withBytes { $0.array }
    #expect(bytes == hex("00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f"))
    wrapped[39] ^= 1
    do throws(CryptographyFailure) {
      try cryptography.aes256KeyUnwrap(wrappingKey: wrappingKey, wrapped: wrapped.span, into: &key)
      Issue.record("unwrapped")
    } catch {}
  }
}
