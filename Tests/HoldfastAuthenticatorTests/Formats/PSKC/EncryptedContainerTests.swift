import HoldfastAuthenticator
import HoldfastCore
import HoldfastOpenSSL
import Testing

struct EncryptedContainerTests {
  private let secret = Array("12345678901234567890".utf8)

  private func preShared(_ key: [UInt8]) -> ImportParameters {
    ImportParameters(containerKey: .preShared(key.secret))
  }

  private func passphrase(_ text: String) -> ImportParameters {
    ImportParameters(containerKey: .passphrase(text.secret))
  }

  @Test("the container of RFC 6030's Figure 6 opens under its key")
  func figure6() throws {
    let credential = try #require(
      try read(ContainerText.figure6.text, .pskc, preShared(ContainerText.figure6Key)).first)
    #expect(credential.secretArray == secret && credential.method == .hotp(.sha1, .eight))
  }

  @Test("the container of RFC 6030's Figure 7 opens under its passphrase")
  func figure7() throws {
    let credential = try #require(try read(ContainerText.figure7.text, .pskc, passphrase("qwerty")).first)
    #expect(credential.secretArray == secret)
  }

  @Test("a key under certificates, as in RFC 6030's Figure 8, is not supported")
  func figure8() {
    let certificate =
      "<EncryptionKey><ds:X509Data><ds:X509Certificate>AA==</ds:X509Certificate></ds:X509Data></EncryptionKey>"
    #expect(fault(ContainerText(protection: certificate).text, .pskc) == .unsupportedAlgorithm)
  }

  @Test("a wrong key or passphrase, or none, or one of the other kind, opens nothing")
  func wrongKey() {
    let (figure6, figure7) = (ContainerText.figure6.text, ContainerText.figure7.text)
    #expect(fault(figure6, .pskc) == .keyNeeded)
    #expect(fault(figure6, .pskc, passphrase("qwerty")) == .keyNeeded)
    #expect(fault(figure7, .pskc) == .passphraseNeeded)
    #expect(fault(figure7, .pskc, preShared(ContainerText.figure6Key)) == .passphraseNeeded)
    #expect(fault(figure7, .pskc, passphrase("Qwerty")) == .wrongKey)
    #expect(fault(figure7, .pskc, passphrase("")) == .wrongKey)
    #expect(fault(figure6, .pskc, preShared([])) == .wrongKey)
    #expect(fault(figure6, .pskc, preShared([UInt8](repeating: 1, count: 32))) == .wrongKey)
    for bit in 0..<128 {
      var key = ContainerText.figure6Key
      key[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(fault(figure6, .pskc, preShared(key)) == .wrongKey)
    }
  }

  @Test("a value that was changed, or has another MAC or none, is refused before it is decrypted")
  func changed() {
    let value = "AAECAwQFBgcICQoLDA0OD+cIHItlB3Wra1DUpxVvOx2lef1VmNPCMl8jwZqIUqGv"
    func reason(value: String, mac: String?) -> ImportFault? {
      var container = ContainerText.figure6
      container.packages = [ContainerText.key(data: ContainerText.encrypted(value: value, mac: mac))]
      return fault(container.text, .pskc, preShared(ContainerText.figure6Key))
    }
    let mac = "Su+NvtQfmvfJzF6bmQiJqoLRExc="
    #expect(reason(value: value, mac: mac) == nil)
    #expect(reason(value: value, mac: nil) == .missingMAC)
    #expect(reason(value: value, mac: "") == .wrongKey)
    #expect(reason(value: value, mac: "Su+NvtQfmvfJzF6bmQ==") == .wrongKey)
    #expect(reason(value: value, mac: "Su+NvtQfmvfJzF6bmQiJqoLRExY=") == .wrongKey)
    #expect(reason(value: value, mac: "Su-NvtQfmvfJzF6bmQiJqoLRExc=") == .malformed)
    #expect(reason(value: "B" + value.dropFirst(), mac: mac) == .wrongKey)
    #expect(reason(value: String(value.dropLast(4)), mac: mac) == .wrongKey)
    #expect(reason(value: "", mac: mac) == .wrongKey)
  }

  @Test("a container whose parts do not belong together is refused")
  func parts() {
    let key = ContainerText.figure6Key
    var withoutKey = ContainerText.figure6
    withoutKey.protection = ""
    #expect(fault(withoutKey.text, .pskc, preShared(key)) == .malformed)
    var withoutMAC = ContainerText.figure6
    withoutMAC.protection = ContainerText.preSharedKey
    #expect(fault(withoutMAC.text, .pskc, preShared(key)) == .malformed)
    let onlyMAC = ContainerText(protection: ContainerText.macMethod(key: nil))
    #expect(fault(onlyMAC.text, .pskc) == .malformed)
    var otherMAC = ContainerText.figure6
    otherMAC.protection =
      ContainerText.preSharedKey + ContainerText.macMethod("http://www.w3.org/2001/04/xmldsig-more#hmac-md5", key: nil)
    #expect(fault(otherMAC.text, .pskc, preShared(key)) == .unsupportedAlgorithm)
    for cipher in [
      "http://www.w3.org/2001/04/xmlenc#tripledes-cbc", "http://www.w3.org/2001/04/xmlenc#rsa_1_5", "aes128-cbc", "",
    ] {
      var container = ContainerText(protection: ContainerText.preSharedKey)
      container.packages = [ContainerText.key(data: ContainerText.encrypted(cipher: cipher, value: "AA==", mac: nil))]
      #expect(fault(container.text, .pskc, preShared(key)) == .unsupportedAlgorithm)
    }
  }

  @Test("AES-192 and AES-256 with longer MACs, keyed by the encryption key, open too, however they are padded")
  func otherCiphers() throws {
    for (bits, hash, name) in [(192, HMAC.sha256, "256"), (256, .sha384, "384"), (256, .sha512, "512")] {
      let key = (0..<UInt8(bits / 8)).map { $0 }
      let vector = [UInt8](repeating: 7, count: 16)
      let encrypted = try AESCBC.encrypt(key: key.span, initializationVector: vector.span, message: secret.span)
      let text = container(key: key, hash: hash, name: name, bits: bits, value: vector + encrypted)
      #expect(try read(text, .pskc, preShared(key)).first?.secretArray == secret)
    }
  }

  @Test("padding that only ends in its length, as XML Encryption has it, is read")
  func arbitraryPadding() throws {
    let key = (0..<UInt8(32)).map { $0 }
    let vector = [UInt8](repeating: 7, count: 16)
    let padded = secret + [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    // PKCS #7 adds a whole block to whole blocks, which is left out again.
    let blocks = try AESCBC.encrypt(key: key.span, initializationVector: vector.span, message: padded.span).dropLast(16)
    let text = container(key: key, hash: .sha256, name: "256", bits: 256, value: vector + blocks)
    #expect(try read(text, .pskc, preShared(key)).first?.secretArray == secret)
    for last: UInt8 in [0, 17, 255] {
      let wrong = secret + [UInt8](repeating: 0, count: 11) + [last]
      let blocks = try AESCBC.encrypt(key: key.span, initializationVector: vector.span, message: wrong.span).dropLast(
        16)
      let text = container(key: key, hash: .sha256, name: "256", bits: 256, value: vector + blocks)
      #expect(fault(text, .pskc, preShared(key)) == .wrongKey)
    }
  }

  /// A container whose MAC is keyed by the encryption key.
  private func container(key: [UInt8], hash: HMAC, name: String, bits: Int, value: [UInt8]) -> String {
    var code = [UInt8](repeating: 0, count: hash.byteCount)
    var bytes = code.mutableSpan
    try? hash.authenticate(value.span, key: key.span, into: &bytes)
    let method = ContainerText.macMethod("http://www.w3.org/2001/04/xmldsig-more#hmac-sha\(name)", key: nil)
    let data = ContainerText.encrypted(
      cipher: "http://www.w3.org/2001/04/xmlenc#aes\(bits)-cbc", value: base64(value), mac: base64(code))
    return ContainerText(protection: ContainerText.preSharedKey + method, packages: [ContainerText.key(data: data)])
      .text
  }

  private func base64(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.append(asPaddedBase64: bytes.span)
    return String(decoding: text, as: UTF8.self)
  }

  @Test("key wrap needs no MAC, and knows a wrong key")
  func keyWrap() throws {
    // RFC 3394 §4.1.
    let key = (0..<UInt8(16)).map { $0 }
    let data = ContainerText.encrypted(
      cipher: "http://www.w3.org/2001/04/xmlenc#kw-aes128", value: "H6aLCoEStEeu80vY+1p7gp0+hiNx0s/l", mac: nil)
    let text = ContainerText(protection: ContainerText.preSharedKey, packages: [ContainerText.key(data: data)]).text
    let expected = (0..<UInt8(16)).map { $0 * 0x11 }
    #expect(try read(text, .pskc, preShared(key)).first?.secretArray == expected)
    #expect(fault(text, .pskc, preShared(key.reversed())) == .wrongKey)
  }

  @Test("counters and periods may be encrypted as well, as up to 8 bytes")
  func encryptedNumbers() throws {
    let key = (0..<UInt8(32)).map { $0 }
    func container(_ name: String, _ number: [UInt8]) throws -> String {
      let vector = [UInt8](repeating: 9, count: 16)
      let value = vector + (try AESCBC.encrypt(key: key.span, initializationVector: vector.span, message: number.span))
      var code = [UInt8](repeating: 0, count: 20)
      var bytes = code.mutableSpan
      try HMAC.sha1.authenticate(value.span, key: key.span, into: &bytes)
      let data = ContainerText.encrypted(
        name, cipher: "http://www.w3.org/2001/04/xmlenc#aes256-cbc", value: base64(value), mac: base64(code))
      let package = ContainerText.key(
        algorithm: name == "Counter" ? "hotp" : "totp", data: ContainerText.plainSecret + data)
      return ContainerText(
        protection: ContainerText.preSharedKey + ContainerText.macMethod(key: nil), packages: [package]
      ).text
    }
    let counter = try container("Counter", [0, 0, 0, 0, 0, 0, 1, 2])
    #expect(try read(counter, .pskc, preShared(key)).first?.nextCounter == 258)
    let period = try container("TimeInterval", [0, 0, 0, 60])
    #expect(try read(period, .pskc, preShared(key)).first?.method == .totp(.sha1, .eight, periodSeconds: 60))
    let shortened = try container("TimeInterval", [0x1e])
    #expect(try read(shortened, .pskc, preShared(key)).first?.method == .totp(.sha1, .eight, periodSeconds: 30))
    #expect(fault(try container("Counter", []), .pskc, preShared(key)) == .malformed)
    #expect(fault(try container("Counter", [0, 0, 0, 0, 0, 0, 0, 0, 1]), .pskc, preShared(key)) == .malformed)
    #expect(fault(try container("Counter", [0, 0x20, 0, 0, 0, 0, 0, 0]), .pskc, preShared(key)) == .invalidCounter)
  }

  @Test("a derivation that is unknown, impossible or endless is refused before it is begun")
  func derivations() {
    func reason(_ protection: String) -> ImportFault? {
      var container = ContainerText.figure7
      container.protection = protection
      return fault(container.text, .pskc, passphrase("qwerty"))
    }
    #expect(reason(ContainerText.passphraseKey(iterations: "10000001")) == .tooLarge)
    // One fewer would be computed, which takes seconds, but for the passphrase.
    let most = ContainerText(protection: ContainerText.passphraseKey(iterations: "10000000"))
    #expect(fault(most.text, .pskc) == .passphraseNeeded)
    #expect(reason(ContainerText.passphraseKey(iterations: "0")) == .malformed)
    #expect(reason(ContainerText.passphraseKey(iterations: "-1")) == .malformed)
    #expect(reason(ContainerText.passphraseKey(iterations: "99999999999999999999")) == .malformed)
    #expect(reason(ContainerText.passphraseKey(salt: "")) == .malformed)
    #expect(reason(ContainerText.passphraseKey(keyLength: "20")) == .unsupportedAlgorithm)
    #expect(reason(ContainerText.passphraseKey(keyLength: "0")) == .unsupportedAlgorithm)
    #expect(reason(ContainerText.passphraseKey(function: #"<PRF Algorithm="md5"/>"#)) == .unsupportedAlgorithm)
    #expect(reason(ContainerText.passphraseKey(algorithm: "urn:scrypt")) == .unsupportedAlgorithm)
    let sha256 = ContainerText.passphraseKey(
      function: #"<PRF xmlns="" Algorithm="http://www.w3.org/2001/04/xmldsig-more#hmac-sha256"/>"#)
    #expect(reason(sha256 + ContainerText.macMethod(key: nil)) == .wrongKey)
  }
}
