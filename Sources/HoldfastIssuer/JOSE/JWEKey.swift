import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

/// A JWE key with its algorithms. They are configured with the key and never taken from a header.
///
/// Source: RFC 7516; RFC 8725 §3.1. Only one thread at a time may use it.
package struct JWEKey: ~Copyable {
  /// The key management algorithm.
  package let management: JWEKeyManagement
  /// The content encryption algorithm.
  package let encryption: JWEContentEncryption
  /// The required value of a header's `kid`, if the header has one.
  package let keyID: String?
  package var material: JWEKeyMaterial

  /// Reads a private or symmetric JWK that names `alg` and `enc`.
  ///
  /// - Throws: `unexpected` if it names no algorithm or an unknown one, or has the wrong kind or size of key.
  package init(parsing json: Span<UInt8>) throws(JOSEFault) {
    let key: JWK
    do throws(KeyFault) { key = try JWK.parse(json) } catch { throw JOSEFault(error) }
    guard let management = key.algorithm.flatMap(JWEKeyManagement.init(rawValue:)),
      let encryption = key.encryption.flatMap(JWEContentEncryption.init(rawValue:))
    else { throw .unexpected }
    let keyID = key.keyID
    let material: JWEKeyMaterial
    do throws(KeyFault) {
      switch management.method {
      case .oaep: material = .rsa(try key.rsaPrivateKey())
      case .agree, .agreeAndWrap: material = .elliptic(try key.ellipticPrivateKey())
      case .direct, .wrap, .gcmWrap: material = .octets(try key.octets())
      }
    } catch { throw JOSEFault(error) }
    try self.init(material, management: management, encryption: encryption, keyID: keyID)
  }

  /// Creates an elliptic-curve key with its algorithms.
  ///
  /// - Throws: `unexpected` if `management` is not a key agreement.
  package init(
    _ key: consuming ECPrivateKey, management: JWEKeyManagement, encryption: JWEContentEncryption, keyID: String?
  ) throws(JOSEFault) {
    try self.init(.elliptic(key), management: management, encryption: encryption, keyID: keyID)
  }

  private init(
    _ material: consuming JWEKeyMaterial, management: JWEKeyManagement, encryption: JWEContentEncryption,
    keyID: String?
  ) throws(JOSEFault) {
    guard material.fits(management, encryption) else { throw .unexpected }
    self.management = management
    self.encryption = encryption
    self.keyID = keyID
    self.material = material
  }
}

extension JWEKeyMaterial {
  /// Returns whether the key has the kind and size that the algorithms require.
  fileprivate func fits(_ management: JWEKeyManagement, _ encryption: JWEContentEncryption) -> Bool {
    switch management.method {
    case .oaep: isRSA
    case .agree, .agreeAndWrap: curve != nil
    case .direct: octetCount == encryption.keyByteCount
    case .wrap(let count), .gcmWrap(let count): octetCount == count
    }
  }
}

extension JWEKey {
  /// Decrypts a compact JWE of at most 8192 bytes.
  ///
  /// Source: RFC 7516 §5.2. `contentType` is the required value of `cty`, if the header has one. With `acceptsCompressed`, which is
  /// for test vectors only, a header may have `zip`, and the result is still compressed.
  ///
  /// - Throws: `malformed` or `unexpected` before any key is used, `refused` for header parameters that are never
  ///   supported, and an opaque `cryptography` for any failure to decrypt.
  package mutating func open(
    _ token: Span<UInt8>, contentType: String, acceptsCompressed: Bool = false
  ) throws(JOSEFault) -> SecretBytes {
    guard token.count <= Self.tokenByteLimit else { throw .malformed }
    let parts: CompactJOSE<5> = try splitCompact(token)
    let header = try HeaderParameters(parts[0], acceptsCompressed: acceptsCompressed)
    return try open(header, contentType, parts[1], parts[2], parts[3], parts[4], authenticating: parts[0])
  }

  /// Decrypts a JWE in JSON for one recipient, whose header is the union of all headers. It is for test vectors only.
  ///
  /// Source: RFC 7516 §5.2 and §7.2.
  ///
  /// - Parameters:
  ///   - parts: the five parts of the compact form, in base64url; the first is not used.
  ///   - data: the additional authenticated data, as ASCII.
  /// - Throws: as for the compact form.
  package mutating func open(
    header: HeaderParameters, contentType: String, parts: [[UInt8]], authenticating data: [UInt8]
  ) throws(JOSEFault) -> SecretBytes {
    guard parts.count == 5 else { throw .malformed }
    let (key, vector, ciphertext, tag) = (parts[1], parts[2], parts[3], parts[4])
    return try open(
      header, contentType, key.span, vector.span, ciphertext.span, tag.span, authenticating: data.span)
  }

  private mutating func open(
    _ header: HeaderParameters, _ contentType: String, _ encodedKey: Span<UInt8>, _ encodedVector: Span<UInt8>,
    _ encodedCiphertext: Span<UInt8>, _ encodedTag: Span<UInt8>, authenticating data: Span<UInt8>
  ) throws(JOSEFault) -> SecretBytes {
    try header.require("alg", management.rawValue)
    try header.require("enc", encryption.rawValue)
    try header.permit("cty", contentType)
    if let keyID { try header.permit("kid", keyID) }
    let wrapped = try decodePart(encodedKey)
    let vector = try decodePart(encodedVector)
    let ciphertext = try decodePart(encodedCiphertext)
    let tag = try decodePart(encodedTag)
    guard vector.count == encryption.vectorByteCount, tag.count == encryption.tagByteCount else { throw .unexpected }
    let contentKey = try contentKey(header: header, wrapped: wrapped.bytes)
    do throws(CryptographyFailure) {
      return try encryption.open(
        ciphertext.bytes, tag: tag.bytes, key: contentKey.bytes, vector: vector.bytes, authenticating: data)
    } catch { throw .cryptography }
  }

  static var tokenByteLimit: Int { 8192 }

  private mutating func contentKey(
    header: HeaderParameters, wrapped: Span<UInt8>
  ) throws(JOSEFault) -> SecretBytes {
    switch management.method {
    case .direct:
      guard wrapped.isEmpty else { throw .unexpected }
      return try material.withOctets { (key) throws(JOSEFault) in SecretBytes(copying: key) }
    case .agree:
      guard wrapped.isEmpty else { throw .unexpected }
      return try agreedKey(header: header, algorithm: encryption.rawValue, byteCount: encryption.keyByteCount)
    case .agreeAndWrap(let count):
      let wrappingKey = try agreedKey(header: header, algorithm: management.rawValue, byteCount: count)
      return try unwrap(wrapped, with: wrappingKey.bytes)
    case .wrap:
      return try material.withOctets { (key) throws(JOSEFault) in try unwrap(wrapped, with: key) }
    case .gcmWrap:
      return try gcmUnwrapped(header: header, wrapped: wrapped)
    case .oaep(let hash):
      return try rsaDecrypted(wrapped, hash: hash)
    }
  }

  /// Derives the agreed key. Source: RFC 7518 §4.6.
  private mutating func agreedKey(
    header: HeaderParameters, algorithm: String, byteCount: Int
  ) throws(JOSEFault) -> SecretBytes {
    guard let curve = material.curve else { throw .unexpected }
    let point = try header.ephemeralPoint(curve: curve)
    let parties = JWEParties(producer: try header.bytes("apu") ?? [], recipient: try header.bytes("apv") ?? [])
    let shared = try material.agree(with: point.span)
    return try parties.deriveKey(from: shared.bytes, algorithm: algorithm, byteCount: byteCount)
  }

  /// Unwraps a content key with AES key wrap. Source: RFC 7518 §4.4.
  private func unwrap(_ wrapped: Span<UInt8>, with key: Span<UInt8>) throws(JOSEFault) -> SecretBytes {
    guard wrapped.count == encryption.keyByteCount + 8 else { throw .unexpected }
    do throws(CryptographyFailure) {
      return try AESKeyWrap.unwrap(key: key, wrapped: wrapped)
    } catch { throw .cryptography }
  }

  /// Unwraps a content key with AES-GCM. Source: RFC 7518 §4.7.
  private func gcmUnwrapped(header: HeaderParameters, wrapped: Span<UInt8>) throws(JOSEFault) -> SecretBytes {
    guard wrapped.count == encryption.keyByteCount, let nonce = try header.bytes("iv"), nonce.count == 12,
      let tagBytes = try header.bytes("tag"), let tag = AuthenticationTag(tagBytes.span)
    else { throw .unexpected }
    return try material.withOctets { (key) throws(JOSEFault) in
      var contentKey = SecretBytes(copying: wrapped)
      do throws(CryptographyFailure) {
        var bytes = contentKey.mutableBytes
        try AESGCM.open(key: key, nonce: nonce.span, authenticating: Span(), message: &bytes, tag: tag)
      } catch { throw .cryptography }
      return contentKey
    }
  }

  /// Decrypts a content key. The result always has the right size: a wrong key only fails later, with the content, and
  /// reveals nothing.
  ///
  /// Source: RFC 7516 §11.5.
  private func rsaDecrypted(_ wrapped: Span<UInt8>, hash: OAEPHash) throws(JOSEFault) -> SecretBytes {
    var substitute = SecretBytes(zeros: encryption.keyByteCount)
    var random = SystemRandom()
    do throws(RandomFailure) {
      var bytes = substitute.mutableBytes
      try random.fill(&bytes)
    } catch { throw .cryptography }
    do throws(JOSEFault) {
      let contentKey = try material.decryptOAEP(wrapped, hash: hash)
      return contentKey.count == encryption.keyByteCount ? contentKey : substitute
    } catch {
      return substitute
    }
  }

  /// Encrypts `plaintext` for ``open(_:contentType:)``, to the public half if the key has one.
  ///
  /// Source: RFC 7516 §5.1.
  ///
  /// - Throws: `cryptography` if libcrypto or the random source fails.
  package borrowing func seal(
    _ plaintext: Span<UInt8>, contentType: String, random: inout some RandomSource & ~Copyable
  ) throws(JOSEFault) -> [UInt8] {
    let writer = JWEWriter(management: management, encryption: encryption, keyID: keyID, contentType: contentType)
    switch material {
    case .elliptic(let key):
      let recipient = JWERecipient(
        curve: key.curve, point: key.publicPoint, management: management, encryption: encryption, keyID: keyID)
      return try recipient.seal(plaintext, contentType: contentType, random: &random)
    case .rsa(let key):
      guard case .oaep(let hash) = management.method else { throw .unexpected }
      let contentKey = try writer.freshContentKey(random: &random)
      let wrapped: [UInt8]
      do throws(CryptographyFailure) {
        wrapped = try key.encryptOAEP(contentKey.bytes, hash: hash, label: Span())
      } catch { throw .cryptography }
      return try writer.write(plaintext, contentKey: contentKey.bytes, wrapped: wrapped, extra: [], random: &random)
    case .octets(let key):
      if case .direct = management.method {
        return try writer.write(plaintext, contentKey: key.bytes, wrapped: [], extra: [], random: &random)
      }
      let contentKey = try writer.freshContentKey(random: &random)
      let (wrapped, extra) = try wrap(contentKey.bytes, with: key.bytes, random: &random)
      return try writer.write(plaintext, contentKey: contentKey.bytes, wrapped: wrapped, extra: extra, random: &random)
    }
  }

  /// Wraps a content key. Source: RFC 7518 §4.4 and §4.7.
  private borrowing func wrap(
    _ contentKey: Span<UInt8>, with key: Span<UInt8>, random: inout some RandomSource & ~Copyable
  ) throws(JOSEFault) -> ([UInt8], [(String, JSONValue)]) {
    guard case .gcmWrap = management.method else {
      do throws(CryptographyFailure) {
        return (try AESKeyWrap.wrap(key: key, plain: contentKey), [])
      } catch { throw .cryptography }
    }
    var nonce = FixedBytes<12>()
    do throws(RandomFailure) { nonce = try random.fixedBytes() } catch { throw .cryptography }
    var wrapped = [UInt8](contentKey)
    var tag = AuthenticationTag()
    do throws(CryptographyFailure) {
      var bytes = wrapped.mutableSpan
      try AESGCM.seal(key: key, nonce: nonce.bytes, authenticating: Span(), message: &bytes, tag: &tag)
    } catch { throw .cryptography }
    return (wrapped, [("iv", .string(base64URL(nonce.bytes))), ("tag", .string(base64URL(tag.bytes)))])
  }
}

extension JWEKey {
  /// Generates a P-256 key for `ECDH-ES` with `A256GCM`, as a private JWK. Source: RFC 7517 §4, RFC 7518 §6.2.
  package static func generatedJWK() throws(CryptographyFailure) -> SecretBytes {
    let key = try ECPrivateKey(generatingOn: .p256)
    var scalar = SecretBytes(zeros: 32)
    var bytes = scalar.mutableBytes
    try key.writeScalar(into: &bytes)
    let json = publicJWK(curve: .p256, point: key.publicPoint).compact()
    var text = ByteBuffer<1024>()
    do throws(EncodingFault) {
      try text.append(json.span.extracting(droppingLast: 1))
      try text.append(#","d":""#)
      try text.append(asBase64URL: scalar.bytes)
      try text.append(#"","alg":"ECDH-ES","enc":"A256GCM"}"#)
      try text.append(UInt8(ascii: "\n"))
    } catch { throw CryptographyFailure() }
    return SecretBytes(copying: text.bytes)
  }
}

/// The key material, of one of three kinds.
package enum JWEKeyMaterial: ~Copyable {
  case octets(SecretBytes)
  case rsa(RSAPrivateKey)
  case elliptic(ECPrivateKey)

  package var isRSA: Bool {
    switch self {
    case .rsa: true
    default: false
    }
  }

  /// The length of a symmetric key, in bytes; nil for the other kinds.
  package var octetCount: Int? {
    switch self {
    case .octets(let key): key.count
    default: nil
    }
  }

  /// The curve of an elliptic-curve key; nil for the other kinds.
  package var curve: NISTCurve? {
    switch self {
    case .elliptic(let key): key.curve
    default: nil
    }
  }

  /// Lends the bytes of a symmetric key to `body`.
  package borrowing func withOctets<Result: ~Copyable>(
    _ body: (Span<UInt8>) throws(JOSEFault) -> Result
  ) throws(JOSEFault) -> Result {
    switch self {
    case .octets(let key): return try body(key.bytes)
    default: throw .unexpected
    }
  }

  /// Performs ECDH with a SEC1 uncompressed point.
  package mutating func agree(with point: Span<UInt8>) throws(JOSEFault) -> SecretBytes {
    switch consume self {
    case .elliptic(var key):
      var shared = SecretBytes(zeros: key.curve.coordinateByteCount)
      do throws(CryptographyFailure) {
        var bytes = shared.mutableBytes
        try key.agree(with: point, into: &bytes)
      } catch {
        self = .elliptic(key)
        throw .cryptography
      }
      self = .elliptic(key)
      return shared
    case let other:
      self = other
      throw .unexpected
    }
  }

  /// Decrypts a message that was encrypted to an RSA key with OAEP.
  package borrowing func decryptOAEP(_ message: Span<UInt8>, hash: OAEPHash) throws(JOSEFault) -> SecretBytes {
    switch self {
    case .rsa(let key):
      do throws(CryptographyFailure) {
        return try key.decryptOAEP(message, hash: hash, label: Span())
      } catch { throw .cryptography }
    default: throw .unexpected
    }
  }
}
