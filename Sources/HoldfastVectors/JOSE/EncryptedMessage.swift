import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A JWE in compact form. Source: RFC 7516 §5.2; RFC 7518 §4 for the key management.
struct EncryptedMessage {
  private let message: CompactMessage
  private let encryptionName: String
  private let encryption: ContentEncryption

  /// Parses the text of a message, without any key.
  init(_ text: String) throws(Refusal) {
    message = try CompactMessage(text, partCount: 5)
    guard let name = message.header["enc"]?.text, let encryption = ContentEncryption(name) else {
      throw Refusal(reason: "enc")
    }
    encryptionName = name
    self.encryption = encryption
  }

  /// Returns whether the algorithm is known, but not implemented: RSA1_5, whose padding cannot be checked without an oracle,
  /// and those with passwords.
  var isSkipped: Bool { message.algorithm == "RSA1_5" || message.algorithm.hasPrefix("PBES2-") }

  /// The member `alg`.
  var algorithm: String { message.algorithm }

  /// Returns the key of a set that this message can mean, if that key is for its `alg` and `enc`.
  func key(in keys: JOSEKeys) throws(Refusal) -> JSONValue {
    let key = try keys.key(for: message, purpose: .encryption)
    // The key of `dir` is that of the content encryption.
    let names = algorithm == "dir" ? ["dir", encryptionName] : [algorithm]
    guard key.isKey(forAny: names) else { throw Refusal(reason: "key for another alg") }
    guard key["enc"] == nil || key["enc"]?.text == encryptionName else { throw Refusal(reason: "key for another enc") }
    return key
  }

  /// Returns the plaintext.
  func open(with key: JSONValue) throws(Refusal) -> [UInt8] {
    let parsed = try key.parsedKey()
    let contentKey = try contentKey(parsed)
    let plaintext = try encryption.open(
      message.parts[2], key: contentKey, initializationVector: message.parts[1], authenticating: message.texts[0],
      tag: message.parts[3])
    guard let compression = message.header["zip"] else { return plaintext }
    guard compression.text == "DEF", let inflated = Inflation.inflate(plaintext, limit: 1 << 20) else {
      throw Refusal(reason: "zip")
    }
    return inflated
  }

  private func contentKey(_ key: consuming JWK) throws(Refusal) -> [UInt8] {
    let wrapped = message.parts[0]
    switch algorithm {
    case "dir":
      guard wrapped.isEmpty else { throw Refusal(reason: "encrypted key next to dir") }
      return try key.secretOctets()
    case "A128KW": return try Self.unwrap(wrapped, key.secretOctets(), 16)
    case "A192KW": return try Self.unwrap(wrapped, key.secretOctets(), 24)
    case "A256KW": return try Self.unwrap(wrapped, key.secretOctets(), 32)
    case "A128GCMKW": return try openWrapped(wrapped, key.secretOctets(), 16)
    case "A192GCMKW": return try openWrapped(wrapped, key.secretOctets(), 24)
    case "A256GCMKW": return try openWrapped(wrapped, key.secretOctets(), 32)
    case "RSA-OAEP": return try Self.decrypt(wrapped, key, .sha1)
    case "RSA-OAEP-256": return try Self.decrypt(wrapped, key, .sha256)
    case "ECDH-ES":
      guard wrapped.isEmpty else { throw Refusal(reason: "encrypted key next to ECDH-ES") }
      return try agree(key, name: encryptionName, byteCount: encryption.keyByteCount)
    case "ECDH-ES+A128KW": return try Self.unwrap(wrapped, agree(key, name: algorithm, byteCount: 16), 16)
    case "ECDH-ES+A192KW": return try Self.unwrap(wrapped, agree(key, name: algorithm, byteCount: 24), 24)
    case "ECDH-ES+A256KW": return try Self.unwrap(wrapped, agree(key, name: algorithm, byteCount: 32), 32)
    default: throw Refusal(reason: "alg \(algorithm)")
    }
  }

  private static func unwrap(_ wrapped: [UInt8], _ key: [UInt8], _ byteCount: Int) throws(Refusal) -> [UInt8] {
    guard key.count == byteCount else { throw Refusal(reason: "key of \(key.count) bytes") }
    do throws(CryptographyFailure) {
      let opened = try AESKeyWrap.unwrap(key: key.span, wrapped: wrapped.span)
      return [UInt8](opened.bytes)
    } catch { throw Refusal(reason: "encrypted key") }
  }

  /// Opens a key that is encrypted with AES-GCM. Source: RFC 7518 §4.7.
  private func openWrapped(_ wrapped: [UInt8], _ key: [UInt8], _ byteCount: Int) throws(Refusal) -> [UInt8] {
    guard key.count == byteCount else { throw Refusal(reason: "key of \(key.count) bytes") }
    guard let initializationVector = try message.headerBytes("iv"), let tag = try message.headerBytes("tag") else {
      throw Refusal(reason: "header without iv or tag")
    }
    return try ContentEncryption.openGCM(wrapped, key, initializationVector, [], tag)
  }

  private static func decrypt(
    _ wrapped: [UInt8], _ key: consuming JWK, _ hash: OAEPHash
  ) throws(Refusal) -> [UInt8] {
    let rsa = try rsaKey(key)
    let none: [UInt8] = []
    do throws(CryptographyFailure) {
      let opened = try rsa.decryptOAEP(wrapped.span, hash: hash, label: none.span)
      return [UInt8](opened.bytes)
    } catch { throw Refusal(reason: "encrypted key") }
  }

  private static func rsaKey(_ key: consuming JWK) throws(Refusal) -> RSAPrivateKey {
    do throws(KeyFault) { return try key.rsaPrivateKey() } catch { throw Refusal(reason: "RSA key") }
  }

  /// Derives a key from the ephemeral key in the header and the recipient's key. Source: RFC 7518 §4.6.2.
  private func agree(_ key: consuming JWK, name: String, byteCount: Int) throws(Refusal) -> [UInt8] {
    guard let ephemeral = message.header["epk"] else { throw Refusal(reason: "header without epk") }
    let own = key.curve
    var shared: [UInt8]
    do throws(KeyFault) {
      let peer = try JWK.publicKey(in: ephemeral)
      var key = try key.ellipticPrivateKey()
      guard peer.curve == own else { throw .unexpected }
      let point = try peer.publicPoint()
      shared = [UInt8](repeating: 0, count: key.curve.coordinateByteCount)
      var output = shared.mutableSpan
      do throws(CryptographyFailure) { try key.agree(with: point.span, into: &output) } catch { throw .notOnCurve }
    } catch { throw Refusal(reason: "key agreement") }
    let parties = try [message.headerBytes("apu") ?? [], message.headerBytes("apv") ?? []]
    var info = Self.prefixed(Array(name.utf8))
    for party in parties { info += Self.prefixed(party) }
    info += Self.number(byteCount * 8)
    guard let derived = ConcatenationKDF.derive(shared, info: info, byteCount: byteCount) else {
      throw Refusal(reason: "key derivation")
    }
    return derived
  }

  private static func number(_ value: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
  }

  private static func prefixed(_ bytes: [UInt8]) -> [UInt8] { number(bytes.count) + bytes }
}
