/// A compact serialisation split at its dots. The spans point into the token.
///
/// Source: RFC 7515 §7.1, RFC 7516 §7.1.
package struct CompactJOSE<let count: Int>: ~Escapable {
  private let text: Span<UInt8>
  /// The end of each part: the index of its dot, or the end of the text for the last part.
  private let ends: InlineArray<count, Int>

  /// Splits `text`. Throws `malformed` unless there are exactly `count` parts. Timing: it reveals where the dots are, and nothing
  /// about other characters.
  @_lifetime(copy text)
  package init(_ text: Span<UInt8>) throws(EncodingFault) {
    var ends = InlineArray<count, Int>(repeating: text.count)
    var part = 0
    for index in text.indices where isCharacter(text[index], 0x2e) {
      guard part < count - 1 else { throw .malformed }
      ends[part] = index
      part += 1
    }
    guard part == count - 1 else { throw .malformed }
    self.text = text
    self.ends = ends
  }

  /// The part at an index from 0 to `count` - 1, still encoded.
  package subscript(part: Int) -> Span<UInt8> {
    @_lifetime(copy self)
    get { text.extracting((part == 0 ? 0 : ends[part - 1] + 1)..<ends[part]) }
  }

  /// The text before the last dot, which a JWS signs.
  package var signingInput: Span<UInt8> {
    @_lifetime(copy self)
    get { text.extracting(0..<ends[count - 2]) }
  }
}

/// The parts of a compact JWE that describe its encryption, decoded.
///
/// Source: RFC 7516 §4 and §5.2, RFC 7518 §4.6.
package struct JOSEEnvelope: ~Copyable {
  let header: JOSEHeader
  let algorithm: JOSEAlgorithm
  package let point: P256Point
  let iv: FixedBytes<12>
  /// The wrapped content key, 40 bytes; empty for direct agreement.
  private let wrappedKey: ByteBuffer<40>

  /// Decodes the second and third part of the serialisation, which are base64url.
  package init(
    header: consuming JOSEHeader, encryptedKey: Span<UInt8>, iv: Span<UInt8>
  ) throws(EncodingFault) {
    guard header.isAES256GCM, header.isContentTypeJWT, let algorithm = header.algorithm, algorithm != .es256,
      let point = header.ephemeralPoint
    else { throw .unexpected }
    var wrappedKey = ByteBuffer<40>()
    try wrappedKey.append(base64URL: encryptedKey)
    guard wrappedKey.count == (algorithm == .ecdhES ? 0 : 40) else { throw .unexpected }
    self.iv = try decodeFixed(iv)
    self.header = header
    self.algorithm = algorithm
    self.point = point
    self.wrappedKey = wrappedKey
  }

  /// Returns the key of the content, derived or unwrapped.
  package borrowing func contentKey<Crypto: Cryptography & ~Copyable>(
    from shared: borrowing Secret<32>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    let derived = try concatKDF(shared, using: &cryptography)
    guard algorithm == .ecdhESA256KW else { return derived }
    var unwrapped = Secret<32>()
    try cryptography.aes256KeyUnwrap(wrappingKey: derived, wrapped: wrappedKey.bytes, into: &unwrapped)
    return unwrapped
  }

  /// Derives the 256 bits that are needed, with one round of Concat KDF.
  ///
  /// Source: RFC 7518 §4.6.2, SP 800-56A §5.8.1.
  private borrowing func concatKDF<Crypto: Cryptography & ~Copyable>(
    _ shared: borrowing Secret<32>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    var hash = try cryptography.sha256()
    hash.append(bigEndian: UInt32(1))
    shared.withBytes { hash.append($0) }
    hash.append(bigEndian: UInt32(algorithm.keyDerivationID.utf8CodeUnitCount))
    hash.append(algorithm.keyDerivationID)
    hash.append(bigEndian: UInt32(header.partyU.count))
    hash.append(header.partyU.bytes)
    hash.append(bigEndian: UInt32(header.partyV.count))
    hash.append(header.partyV.bytes)
    hash.append(bigEndian: UInt32(256))
    return try hash.finishSecret()
  }
}

/// Decodes exactly `count` bytes, at most 64, from base64url.
func decodeFixed<Kind, let count: Int>(
  _ text: Span<UInt8>, as type: TypedBytes<Kind, count>.Type = TypedBytes<Kind, count>.self
) throws(EncodingFault) -> TypedBytes<Kind, count> {
  var buffer = ByteBuffer<64>()
  try buffer.append(base64URL: text)
  guard let fixed = TypedBytes<Kind, count>(buffer.bytes) else { throw .unexpected }
  return fixed
}

/// The members of a JOSE header that Holdfast reads. Some others are refused, and all the rest are ignored.
///
/// Source: RFC 7515 §4.1, RFC 7516 §4.1, RFC 7518 §4.6.1.
package struct JOSEHeader: ~Copyable {
  var algorithm: JOSEAlgorithm?
  var isAES256GCM = false
  var isContentTypeJWT = false
  var isMeasurementToken = false
  var keyID: KeyID?
  var ephemeralPoint: P256Point?
  /// The decoded `apu`; empty if it is absent.
  package var partyU = ByteBuffer<256>()
  /// The decoded `apv`; empty if it is absent.
  var partyV = ByteBuffer<256>()

  package init(_ json: Span<UInt8>) throws(EncodingFault) {
    var reader = try JSONReader(json)
    var object = try reader.beginObject()
    while let name = try reader.nextMember(&object) {
      try read(name, from: &reader)
    }
    try reader.finish()
  }

  private mutating func read(_ name: borrowing JSONString, from reader: inout JSONReader) throws(EncodingFault) {
    if name.equals("alg") {
      algorithm = JOSEAlgorithm(try reader.string())
    } else if name.equals("enc") {
      isAES256GCM = try reader.string().equals("A256GCM")
    } else if name.equals("cty") {
      isContentTypeJWT = try reader.string().equals("JWT")
    } else if name.equals("typ") {
      isMeasurementToken = try reader.string().equals("holdfast-mt+jwt")
    } else if name.equals("kid") {
      keyID = try reader.string().base64URLBytes()
    } else if name.equals("epk") {
      ephemeralPoint = try Self.readPoint(&reader)
    } else if name.equals("apu") {
      try Self.decode(try reader.string(), into: &partyU)
    } else if name.equals("apv") {
      try Self.decode(try reader.string(), into: &partyV)
    } else if Self.isRefused(name) {
      throw .unexpected
    } else {
      try reader.skipValue()
    }
  }

  /// Returns whether Holdfast refuses a member, since a sender would use it to choose keys, compression, extensions or
  /// the form of the payload (RFC 7797).
  private static func isRefused(_ name: borrowing JSONString) -> Bool {
    name.equals("b64") || name.equals("zip") || name.equals("crit") || name.equals("jku") || name.equals("jwk")
      || name.equals("x5u") || name.equals("x5c") || name.equals("x5t") || name.equals("x5t#S256")
  }

  private static func decode(_ text: borrowing JSONString, into buffer: inout ByteBuffer<256>) throws(EncodingFault) {
    var encoded = ByteBuffer<344>()
    try text.unescape(into: &encoded)
    try buffer.append(base64URL: encoded.bytes)
  }

  /// Reads a public JWK on P-256, without heap memory. Linux has `JWK` for all other keys. Source: RFC 7518 §6.2.1.
  private static func readPoint(_ reader: inout JSONReader) throws(EncodingFault) -> P256Point {
    var object = try reader.beginObject()
    var isEC = false
    var isP256 = false
    var x: FixedBytes<32>?
    var y: FixedBytes<32>?
    while let name = try reader.nextMember(&object) {
      if name.equals("kty") {
        isEC = try reader.string().equals("EC")
      } else if name.equals("crv") {
        isP256 = try reader.string().equals("P-256")
      } else if name.equals("x") {
        x = try reader.string().base64URLBytes()
      } else if name.equals("y") {
        y = try reader.string().base64URLBytes()
      } else if name.equals("d") {
        throw .unexpected
      } else {
        try reader.skipValue()
      }
    }
    guard isEC, isP256, let x, let y else { throw .unexpected }
    return P256Point(x: x, y: y)
  }
}

/// An algorithm that a measurement token may name.
///
/// Source: RFC 7518 §3.1 and §4.1.
enum JOSEAlgorithm {
  case es256
  case ecdhES
  case ecdhESA256KW

  init?(_ name: borrowing JSONString) {
    if name.equals("ES256") {
      self = .es256
    } else if name.equals("ECDH-ES") {
      self = .ecdhES
    } else if name.equals("ECDH-ES+A256KW") {
      self = .ecdhESA256KW
    } else {
      return nil
    }
  }

  /// The AlgorithmID in Concat KDF. Source: RFC 7518 §4.6.2.
  var keyDerivationID: StaticString {
    self == .ecdhES ? "A256GCM" : "ECDH-ES+A256KW"
  }
}
