import HoldfastCore
import HoldfastOpenSSL

/// The content encryption algorithms of a JWE, all of RFC 7518.
///
/// Source: RFC 7518 §5.1.
package enum JWEContentEncryption: String, Sendable, CaseIterable {
  /// AES-128-CBC with HMAC-SHA-256. Source: RFC 7518 §5.2.3.
  case a128CBCHS256 = "A128CBC-HS256"
  /// AES-192-CBC with HMAC-SHA-384. Source: RFC 7518 §5.2.4.
  case a192CBCHS384 = "A192CBC-HS384"
  /// AES-256-CBC with HMAC-SHA-512. Source: RFC 7518 §5.2.5.
  case a256CBCHS512 = "A256CBC-HS512"
  /// AES-GCM with a key of 128 bits. Source: RFC 7518 §5.3.
  case a128GCM = "A128GCM"
  /// AES-GCM with a key of 192 bits. Source: RFC 7518 §5.3.
  case a192GCM = "A192GCM"
  /// AES-GCM with a key of 256 bits. Source: RFC 7518 §5.3.
  case a256GCM = "A256GCM"

  /// The length of a content key, in bytes.
  package var keyByteCount: Int {
    switch self {
    case .a128GCM: 16
    case .a192GCM: 24
    case .a256GCM, .a128CBCHS256: 32
    case .a192CBCHS384: 48
    case .a256CBCHS512: 64
    }
  }

  /// The length of an initialization vector, in bytes: 12 or 16.
  package var vectorByteCount: Int { hash == nil ? 12 : 16 }

  /// The length of an authentication tag, in bytes: 16, 24 or 32.
  var tagByteCount: Int { hash.map { $0.byteCount / 2 } ?? 16 }

  /// The MAC of the CBC composites; nil for GCM.
  private var hash: HMAC? {
    switch self {
    case .a128CBCHS256: .sha256
    case .a192CBCHS384: .sha384
    case .a256CBCHS512: .sha512
    case .a128GCM, .a192GCM, .a256GCM: nil
    }
  }

  /// Encrypts `message`. The lengths are those above.
  package func seal(
    _ message: Span<UInt8>, key: Span<UInt8>, vector: Span<UInt8>, authenticating data: Span<UInt8>
  ) throws(CryptographyFailure) -> (ciphertext: [UInt8], tag: [UInt8]) {
    guard key.count == keyByteCount, vector.count == vectorByteCount else { throw CryptographyFailure() }
    guard let hash else {
      var sealed = [UInt8](message)
      var tag = AuthenticationTag()
      var bytes = sealed.mutableSpan
      try AESGCM.seal(key: key, nonce: vector, authenticating: data, message: &bytes, tag: &tag)
      return (sealed, [UInt8](tag.bytes))
    }
    let half = key.count / 2
    let ciphertext = try AESCBC.encrypt(
      key: key.extracting(last: half), initializationVector: vector, message: message)
    var tag = [UInt8](repeating: 0, count: tagByteCount)
    var bytes = tag.mutableSpan
    let covered = Self.covered(data, vector, ciphertext.span)
    try hash.authenticate(covered.span, key: key.extracting(first: half), into: &bytes)
    return (ciphertext, tag)
  }

  /// Decrypts `ciphertext`. With CBC, a wrong tag is detected before anything is decrypted.
  ///
  /// Source: RFC 7518 §5.2.2.2 and §5.3. Timing: tags are compared in constant time.
  package func open(
    _ ciphertext: Span<UInt8>, tag: Span<UInt8>, key: Span<UInt8>, vector: Span<UInt8>, authenticating data: Span<UInt8>
  ) throws(CryptographyFailure) -> SecretBytes {
    guard key.count == keyByteCount, vector.count == vectorByteCount, tag.count == tagByteCount else {
      throw CryptographyFailure()
    }
    guard let hash else {
      guard let tag = AuthenticationTag(tag) else { throw CryptographyFailure() }
      var message = SecretBytes(copying: ciphertext)
      var bytes = message.mutableBytes
      try AESGCM.open(key: key, nonce: vector, authenticating: data, message: &bytes, tag: tag)
      return message
    }
    let half = key.count / 2
    let covered = Self.covered(data, vector, ciphertext)
    try hash.verify(tag, of: covered.span, key: key.extracting(first: half))
    return try AESCBC.decrypt(key: key.extracting(last: half), initializationVector: vector, message: ciphertext)
  }

  /// Returns the input of the MAC of a CBC composite: data ‖ vector ‖ ciphertext ‖ the length of the data in bits, as 8
  /// bytes.
  private static func covered(
    _ data: Span<UInt8>, _ vector: Span<UInt8>, _ ciphertext: Span<UInt8>
  ) -> [UInt8] {
    var covered: [UInt8] = []
    covered.append(data)
    covered.append(vector)
    covered.append(ciphertext)
    covered.append(bigEndian: UInt64(data.count) * 8)
    return covered
  }
}

/// The key management algorithms of a JWE: all of RFC 7518 except `RSA1_5` and PBES2, and RSAES-OAEP with longer hashes.
///
/// Source: RFC 7518 §4.1.
package enum JWEKeyManagement: String, Sendable, CaseIterable {
  /// RSAES-OAEP with SHA-1. Source: RFC 7518 §4.3.
  case rsaOAEP = "RSA-OAEP"
  /// RSAES-OAEP with SHA-256. Source: RFC 7518 §4.3.
  case rsaOAEP256 = "RSA-OAEP-256"
  /// RSAES-OAEP with SHA-384. Source: IANA registry of JOSE algorithms; W3C Web Cryptography API, Algorithm Mappings.
  case rsaOAEP384 = "RSA-OAEP-384"
  /// RSAES-OAEP with SHA-512. Source: as for SHA-384.
  case rsaOAEP512 = "RSA-OAEP-512"
  /// AES key wrap with a key of 128 bits. Source: RFC 7518 §4.4.
  case a128KW = "A128KW"
  /// AES key wrap with a key of 192 bits. Source: RFC 7518 §4.4.
  case a192KW = "A192KW"
  /// AES key wrap with a key of 256 bits. Source: RFC 7518 §4.4.
  case a256KW = "A256KW"
  /// A shared key that encrypts the content directly. Source: RFC 7518 §4.5.
  case direct = "dir"
  /// Ephemeral ECDH whose result encrypts the content directly. Source: RFC 7518 §4.6.
  case ecdhES = "ECDH-ES"
  /// Ephemeral ECDH with AES-128 key wrap. Source: RFC 7518 §4.6.
  case ecdhESA128KW = "ECDH-ES+A128KW"
  /// Ephemeral ECDH with AES-192 key wrap. Source: RFC 7518 §4.6.
  case ecdhESA192KW = "ECDH-ES+A192KW"
  /// Ephemeral ECDH with AES-256 key wrap. Source: RFC 7518 §4.6.
  case ecdhESA256KW = "ECDH-ES+A256KW"
  /// AES-GCM key wrap with a key of 128 bits. Source: RFC 7518 §4.7.
  case a128GCMKW = "A128GCMKW"
  /// AES-GCM key wrap with a key of 192 bits. Source: RFC 7518 §4.7.
  case a192GCMKW = "A192GCMKW"
  /// AES-GCM key wrap with a key of 256 bits. Source: RFC 7518 §4.7.
  case a256GCMKW = "A256GCMKW"

  /// The operation that an algorithm performs with the key.
  package enum Method {
    case oaep(OAEPHash)
    case wrap(keyByteCount: Int)
    case direct
    case agree
    case agreeAndWrap(keyByteCount: Int)
    case gcmWrap(keyByteCount: Int)
  }

  package var method: Method {
    switch self {
    case .rsaOAEP: .oaep(.sha1)
    case .rsaOAEP256: .oaep(.sha256)
    case .rsaOAEP384: .oaep(.sha384)
    case .rsaOAEP512: .oaep(.sha512)
    case .a128KW: .wrap(keyByteCount: 16)
    case .a192KW: .wrap(keyByteCount: 24)
    case .a256KW: .wrap(keyByteCount: 32)
    case .direct: .direct
    case .ecdhES: .agree
    case .ecdhESA128KW: .agreeAndWrap(keyByteCount: 16)
    case .ecdhESA192KW: .agreeAndWrap(keyByteCount: 24)
    case .ecdhESA256KW: .agreeAndWrap(keyByteCount: 32)
    case .a128GCMKW: .gcmWrap(keyByteCount: 16)
    case .a192GCMKW: .gcmWrap(keyByteCount: 24)
    case .a256GCMKW: .gcmWrap(keyByteCount: 32)
    }
  }
}

/// Generates a private key from `random`: candidates are drawn until one is in 1 ..< n.
///
/// Source: FIPS 186-5 §A.2.2.
func ephemeralKey(
  on curve: NISTCurve, random: inout some RandomSource & ~Copyable
) throws(JOSEFault) -> ECPrivateKey {
  for _ in 0..<128 {
    var scalar = SecretBytes(zeros: curve.coordinateByteCount)
    do throws(RandomFailure) {
      var bytes = scalar.mutableBytes
      try random.fill(&bytes)
      if curve == .p521 { bytes[0] &= 1 }
    } catch { throw .cryptography }
    do throws(CryptographyFailure) {
      return try ECPrivateKey(curve: curve, scalar: scalar.bytes)
    } catch { continue }
  }
  throw .cryptography
}
