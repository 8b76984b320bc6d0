/// The members of a JOSE header that Holdfast looks at. Others are ignored, but for those that are refused.
///
/// Source: RFC 7515 §4.1, RFC 7516 §4.1, RFC 7518 §4.6.1.
struct JOSEHeader: ~Copyable {
  var algorithm: JOSEAlgorithm?
  var isAES256GCM = false
  var isContentTypeJWT = false
  var isMeasurementToken = false
  var keyID: KeyID?
  var ephemeralPoint: P256Point?
  /// `apu`, decoded; empty where absent.
  var partyU = ByteBuffer<256>()
  /// `apv`, decoded; empty where absent.
  var partyV = ByteBuffer<256>()

  init(_ json: Span<UInt8>) throws(EncodingFault) {
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

  /// Whether a sender would choose keys, compression, extensions or the form of the payload (RFC 7797) by a member.
  private static func isRefused(_ name: borrowing JSONString) -> Bool {
    name.equals("b64") || name.equals("zip") || name.equals("crit") || name.equals("jku") || name.equals("jwk")
      || name.equals("x5u") || name.equals("x5c") || name.equals("x5t") || name.equals("x5t#S256")
  }

  private static func decode(_ text: borrowing JSONString, into buffer: inout ByteBuffer<256>) throws(EncodingFault) {
    var encoded = ByteBuffer<344>()
    try text.unescape(into: &encoded)
    try buffer.append(base64URL: encoded.bytes)
  }

  /// Reads a public JWK on P-256. Source: RFC 7518 §6.2.1.
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

/// The algorithms that a measurement token may name.
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

  /// The AlgorithmID that goes into Concat KDF. Source: RFC 7518 §4.6.2.
  var keyDerivationID: StaticString {
    self == .ecdhES ? "A256GCM" : "ECDH-ES+A256KW"
  }
}
