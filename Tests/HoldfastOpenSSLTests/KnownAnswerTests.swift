import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

@Suite struct KnownAnswerTests {
  @Test func `HMAC gives the answers of RFC 2202 and RFC 4231`() throws {
    let key = [UInt8](repeating: 0x0b, count: 20)
    let message = Array("Hi There".utf8)
    #expect(verifyHMAC(.sha1, key, message, hex("b617318655057264e28bc0b6fb378c8ef146be00")))
    #expect(
      verifyHMAC(.sha256, key, message, hex("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")))
    let sha384 = hex(
      "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6")
    #expect(verifyHMAC(.sha384, key, message, sha384))
    let sha512 = hex(
      "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4"
        + "be9d914eeb61f1702e696c203a126854")
    #expect(verifyHMAC(.sha512, key, message, sha512))
    #expect(verifyHMAC(.sha512, key, message, Array(sha512.prefix(32))))
    #expect(!verifyHMAC(.sha512, key, message, Array(sha512.prefix(9))))
    #expect(!verifyHMAC(.sha384, key, message, sha512))
  }

  @Test func `the Concat KDF gives the answer of RFC 7518 appendix C`() throws {
    let secret = hex("9e56d91d817135d372834283bf84269cfb316ea3da806a48f6daa7798cfe90c4")
    let otherInfo =
      hex("000000074131323847434d") + hex("00000005416c696365") + hex("00000003426f62") + hex("00000080")
    #expect(try concatenationKDF(secret, otherInfo, 16) == hex("56aa8deaf8236d205c2228cd71a7101a"))
  }

  @Test func `the Concat KDF gives more than one hash of output, of which the first is the shorter one`() throws {
    let long = try concatenationKDF([1, 2, 3], [4], 64)
    #expect(try Array(long.prefix(32)) == concatenationKDF([1, 2, 3], [4], 32))
    #expect(Array(long.suffix(32)) != Array(long.prefix(32)))
  }

  @Test(arguments: [
    ("2b7e151628aed2a6abf7158809cf4f3c", "7649abac8119b246cee98e9b12e9197d"),
    ("8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "4f021db243bc633d7178183a9fa071e8"),
    ("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "f58c4c04d6e5f1ba779eabfb5f7bfbd6"),
  ])
  func `AES-CBC gives the answers of SP 800-38A, and takes its own padding`(key: String, block: String) throws {
    let vector = hex("000102030405060708090a0b0c0d0e0f")
    let plain = hex("6bc1bee22e409f96e93d7e117393172a")
    let sealed = try AESCBC.encrypt(key: hex(key).span, initializationVector: vector.span, message: plain.span)
    #expect(sealed.count == 32)
    #expect(Array(sealed.prefix(16)) == hex(block))
    #expect(cbcDecrypt(hex(key), vector, sealed) == plain)
    #expect(cbcDecrypt(hex(key), vector, Array(sealed.prefix(16))) == nil)
    #expect(cbcDecrypt(hex(key), vector, []) == nil)
  }

  @Test func `ECDH gives the answers of RFC 5903 on P-384 and P-521, and refuses another curve's point`() throws {
    let scalar384 = hex(
      "099f3c7034d4a2c699884d73a375a67f7624ef7c6b3c0f160647b67414dce655e35b538041e649ee3faef896783ab194")
    var key384 = try ECPrivateKey(curve: .p384, scalar: scalar384.span)
    var peer384 = try ECPrivateKey(
      curve: .p384,
      scalar: hex(
        "41cb0779b4bdb85d47846725fbec3c9430fab46cc8dc5060855cc9bda0aa2942e0308312916b8ed2960e4bd55a7448fc"
      ).span)
    let shared384 = hex(
      "11187331c279962d93d604243fd592cb9d0a926f422e47187521287e7156c5c4d603135569b9e9d09cf5d4a270f59746")
    #expect(agree(&key384, peer384.publicPoint) == shared384)
    #expect(agree(&peer384, key384.publicPoint) == shared384)
    var key521 = try ECPrivateKey(generatingOn: .p521)
    var peer521 = try ECPrivateKey(generatingOn: .p521)
    #expect(agree(&key521, peer521.publicPoint) == agree(&peer521, key521.publicPoint))
    #expect(agree(&key521, key384.publicPoint) == nil)
    #expect(agree(&key384, key521.publicPoint) == nil)
  }
}

private func agree(_ key: inout ECPrivateKey, _ point: [UInt8]) -> [UInt8]? {
  var shared = [UInt8](repeating: 0, count: key.curve.coordinateByteCount)
  var span = shared.mutableSpan
  do {
    try key.agree(with: point.span, into: &span)
  } catch {
    return nil
  }
  return shared
}

private func cbcDecrypt(_ key: [UInt8], _ vector: [UInt8], _ sealed: [UInt8]) -> [UInt8]? {
  guard let plain = try? AESCBC.decrypt(key: key.span, initializationVector: vector.span, message: sealed.span)
  else { return nil }
  return plain.bytes.array
}

private func concatenationKDF(_ secret: [UInt8], _ otherInfo: [UInt8], _ count: Int) throws -> [UInt8] {
  var output = [UInt8](repeating: 0, count: count)
  var span = output.mutableSpan
  try ConcatenationKDF.derive(secret: secret.span, otherInfo: otherInfo.span, into: &span)
  return output
}
