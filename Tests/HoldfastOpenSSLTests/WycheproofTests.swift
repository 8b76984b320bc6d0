import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

@Suite(.enabled(if: WycheproofFile.isPresent, "HOLDFAST_WYCHEPROOF names no folder"))
struct WycheproofTests {
  @Test func `AES-GCM of every key size seals and opens as Wycheproof says`() throws {
    for test in try WycheproofFile("aes_gcm_test.json").tests where test.group["tagSize"]?.number == 128 {
      let key = try test.bytes("key")
      let nonce = try test.bytes("iv")
      let data = try test.bytes("aad")
      let sealed = try test.bytes("ct")
      let tag = try test.bytes("tag")
      let opened = gcmOpen(key, nonce, data, sealed, tag)
      #expect((opened != nil) == (test.result == "valid" && nonce.count == 12), "\(test.id)")
      guard let opened else { continue }
      #expect(try opened == test.bytes("msg"), "\(test.id)")
      #expect(try gcmSeal(key, nonce, data, opened) == sealed + tag, "\(test.id)")
    }
  }

  @Test func `AES key wrap of every key size wraps and unwraps as Wycheproof says`() throws {
    for test in try WycheproofFile("aes_wrap_test.json").tests {
      let key = try test.bytes("key")
      let wrapped = try test.bytes("ct")
      let opened = unwrap(key, wrapped)
      let expected = test.result == "valid" || (test.result == "acceptable" && wrapped.count >= 24)
      #expect((opened != nil) == expected, "\(test.id) \(test.result)")
      guard let opened else { continue }
      #expect(try opened == test.bytes("msg"), "\(test.id)")
      #expect(try AESKeyWrap.wrap(key: key.span, plain: opened.span) == wrapped, "\(test.id)")
    }
  }

  @Test(arguments: [
    ("hmac_sha1_test.json", HMAC.sha1), ("hmac_sha256_test.json", .sha256), ("hmac_sha512_test.json", .sha512),
  ])
  func `HMAC, cut to the tag's size, is as Wycheproof says`(name: String, hash: HMAC) throws {
    for test in try WycheproofFile(name).tests {
      let verified = try verifyHMAC(hash, test.bytes("key"), test.bytes("msg"), test.bytes("tag"))
      #expect(verified == (test.result == "valid"), "\(name) \(test.id)")
    }
  }

  @Test func `the streaming HMAC is as Wycheproof says`() throws {
    for test in try WycheproofFile("hmac_sha256_test.json").tests {
      let tag = try test.bytes("tag")
      let code = try streamedHMAC(test.bytes("key"), test.bytes("msg"))
      #expect((Array(code.prefix(tag.count)) == tag) == (test.result == "valid"), "\(test.id)")
    }
  }

  @Test func `HKDF-SHA-256 is as Wycheproof says`() throws {
    for test in try WycheproofFile("hkdf_sha256_test.json").tests {
      let size = Int(test.value["size"]?.number ?? 0)
      let output = try hkdf(test.bytes("ikm"), test.bytes("salt"), test.bytes("info"), size)
      #expect((output != nil) == (test.result == "valid"), "\(test.id)")
      if let output { #expect(try output == test.bytes("okm"), "\(test.id)") }
    }
  }

  @Test func `ECDH over P-256 takes uncompressed points of the curve alone`() throws {
    for test in try WycheproofFile("ecdh_secp256r1_ecpoint_test.json").tests {
      let scalar = try Array(([UInt8](repeating: 0, count: 32) + test.bytes("private")).suffix(32))
      let shared = try agree(scalar, test.bytes("public"))
      #expect((shared != nil) == (test.result == "valid"), "\(test.id) \(test.result)")
      if let shared { #expect(try shared == test.bytes("shared"), "\(test.id)") }
    }
  }

  @Test func `ECDSA P-256 verifies as Wycheproof says`() throws {
    for test in try WycheproofFile("ecdsa_secp256r1_sha256_p1363_test.json").tests {
      let key = try #require(test.group["publicKey"]?["uncompressed"]?.text)
      let verified = try verifyECDSA(hex(key), test.bytes("msg"), test.bytes("sig"))
      #expect(verified == (test.result == "valid"), "\(test.id)")
    }
  }

  @Test func `RSA-OAEP with SHA-256 opens as Wycheproof says`() throws {
    for test in try WycheproofFile("rsa_oaep_2048_sha256_mgf1sha256_test.json").tests {
      let key = try #require(test.group["privateKeyPkcs8"]?.text)
      let opened = try decryptOAEP(hex(key), test.bytes("ct"), label: test.bytes("label"))
      #expect((opened != nil) == (test.result == "valid"), "\(test.id)")
      if let opened { #expect(try opened == test.bytes("msg"), "\(test.id)") }
    }
  }
}
