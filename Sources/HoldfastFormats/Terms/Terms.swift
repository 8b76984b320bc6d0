import HoldfastCore
import HoldfastOpenSSL

/// The terms of one measurement token: what the issuer asks of the prover that has it, signed by the issuer.
///
/// They travel next to the token, because a prover cannot read a token, and a device needs none of this. Source: RFC 7515,
/// RFC 7519; docs/protocol.md, "Terms".
package struct Terms: Sendable, Equatable {
  /// The name of the issuer: informative, as in the token.
  package let issuer: BoundedText<64>
  /// SHA-256 of the token's bytes.
  package let tokenDigest: Digest
  /// The time of issue, in Unix seconds.
  package let issued: UInt64
  /// The approved app.
  package let subject: BoundedText<64>
  /// The version of the app.
  package let version: AppVersion
  /// The conditions.
  package let conditions: Conditions

  /// Creates terms.
  package init(
    issuer: BoundedText<64>, tokenDigest: Digest, issued: UInt64, subject: BoundedText<64>, version: AppVersion,
    conditions: Conditions
  ) {
    (self.issuer, self.tokenDigest, self.issued) = (issuer, tokenDigest, issued)
    (self.subject, self.version, self.conditions) = (subject, version, conditions)
  }

  /// Returns SHA-256 of bytes: of a token, by which terms and its prover name it, or of the text under a signature.
  ///
  /// - Throws: `CryptographyFailure` if the cryptographic library fails.
  package static func digest(of bytes: [UInt8]) throws(CryptographyFailure) -> Digest {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(bytes.span)
    return try hash.finish()
  }

  /// The end of the offline limit, in Unix seconds; nil if there is no limit.
  package var offlineUntil: UInt64? { conditions.offlineSeconds.map { issued + $0 } }
}

/// Terms with the issuer's signature, which was verified.
package struct SignedTerms: Sendable, Equatable {
  /// The terms.
  package let terms: Terms
  /// The issuer's key, which the terms name themselves: whoever stores them has to know it from elsewhere, or to keep it.
  package let key: PublicKeyJWK
  /// The compact JWS, at most ``maximumByteCount`` bytes.
  package let bytes: [UInt8]

  /// The value of `typ`.
  package static let type = "holdfast-terms+jwt"
  /// The largest JWS, in bytes.
  package static let maximumByteCount = 50_000
  private static let maximumPayloadByteCount = 36_864
  private static let maximumHeaderByteCount = 256

  /// Signs terms with the issuer's key.
  ///
  /// - Parameters:
  ///   - terms: The terms.
  ///   - point: The public half of the key.
  ///   - sign: Returns the signature over a digest, r ‖ s of 64 bytes.
  /// - Throws: ``TermsFault/malformed`` for terms that are too long; ``TermsFault/cryptography``.
  package init(
    _ terms: Terms, point: P256Point, sign: (Digest) throws(CryptographyFailure) -> FixedBytes<64>
  ) throws(TermsFault) {
    let key = PublicKeyJWK(point: point)
    let payload = terms.payload(key).compact()
    guard payload.count <= Self.maximumPayloadByteCount else { throw .malformed }
    var text: [UInt8] = []
    do throws(CryptographyFailure) {
      var cryptography = OpenSSLCryptography()
      let header = Self.header(try keyID(of: point, using: &cryptography)).compact()
      text.append(asBase64URL: header.span)
      text.append(UInt8(ascii: "."))
      text.append(asBase64URL: payload.span)
      let signature = try sign(try Terms.digest(of: text))
      text.append(UInt8(ascii: "."))
      text.append(asBase64URL: signature.bytes)
    } catch { throw .cryptography }
    self.init(terms: terms, key: key, bytes: text)
  }

  /// Verifies a compact JWS: its form, and the signature of the key that it names itself.
  ///
  /// Source: RFC 7515 §5.2. The header has exactly `alg`, `kid` and `typ`.
  ///
  /// - Throws: ``TermsFault``. A header of another key and a wrong signature are the opaque ``TermsFault/cryptography``.
  package init(verifying bytes: [UInt8]) throws(TermsFault) {
    guard bytes.count <= Self.maximumByteCount else { throw .malformed }
    let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map { Array($0) }
    guard parts.count == 3, parts[0].count <= Self.maximumHeaderByteCount else { throw .malformed }
    let payload = try Self.json(parts[1])
    let key = try Self.key(payload)
    let signatureBytes = try Self.decoded(parts[2])
    guard let signature = FixedBytes<64>(signatureBytes.span) else { throw .malformed }
    let header = try Self.json(parts[0])
    try Self.check(header, parts[0] + [UInt8(ascii: ".")] + parts[1], signature, key.point)
    let terms = try Terms.read(payload)
    self.init(terms: terms, key: key, bytes: bytes)
  }

  private init(terms: Terms, key: PublicKeyJWK, bytes: [UInt8]) {
    (self.terms, self.key, self.bytes) = (terms, key, bytes)
  }

  /// Checks that the header is that of terms under this key, and the signature over the signed text.
  private static func check(
    _ header: JSONValue, _ text: [UInt8], _ signature: FixedBytes<64>, _ point: P256Point
  ) throws(TermsFault) {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      let expected = Self.header(try keyID(of: point, using: &cryptography)).members ?? []
      guard header.members?.count == expected.count, expected.allSatisfy({ header[$0.0] == $0.1 }) else {
        throw CryptographyFailure()
      }
      try cryptography.p256Verify(key: point, digest: try Terms.digest(of: text), signature: signature)
    } catch { throw .cryptography }
  }

  private static func key(_ payload: JSONValue) throws(TermsFault) -> PublicKeyJWK {
    do throws(KeyFault) { return try PublicKeyJWK(payload["key"] ?? .null) } catch { throw .malformed }
  }

  private static func header(_ id: KeyID) -> JSONValue {
    .object([("alg", .string("ES256")), ("kid", .string(base64URL(id.bytes))), ("typ", .string(type))])
  }

  private static func decoded(_ part: [UInt8]) throws(TermsFault) -> [UInt8] {
    do throws(EncodingFault) { return try decodePublicBase64URL(part.span) } catch { throw .malformed }
  }

  private static func json(_ part: [UInt8]) throws(TermsFault) -> JSONValue {
    let bytes = try decoded(part)
    do throws(JSONFault) {
      return try JSONValue(parsing: bytes, byteLimit: maximumPayloadByteCount)
    } catch { throw .malformed }
  }
}

/// The reasons why terms are refused.
package enum TermsFault: Error, Equatable {
  /// The text is not a JWS of this form, too long, or a member is missing, unknown or out of range.
  case malformed
  /// The signature is not that of the key, or the cryptographic library failed.
  case cryptography
}

extension Terms {
  /// The members besides the conditions. Terms of earlier versions have `jti`, too, which is not read.
  private static let memberNames = ["iss", "jti", "tok", "iat", "sub", "ver", "key"]

  /// The payload, in which the issuer names its key.
  fileprivate func payload(_ key: PublicKeyJWK) -> JSONValue {
    .object(
      [
        ("iss", .string(issuer.description)), ("tok", .string(base64URL(tokenDigest.bytes))), ("iat", .integer(issued)),
        ("sub", .string(subject.description)),
        ("ver", .array([version.major, version.minor, version.patch].map { .integer($0) })), ("key", key.json),
      ] + conditions.members)
  }

  /// Reads a payload, whose key was read already.
  fileprivate static func read(_ payload: JSONValue) throws(TermsFault) -> Terms {
    do throws(JSONMistake) { return try Terms(JSONMember(payload)) } catch { throw .malformed }
  }

  private init(_ payload: JSONMember) throws(JSONMistake) {
    try payload.checkMembers(Self.memberNames + Conditions.memberNames)
    _ = try payload.required("key")
    let numbers = try payload.required("ver").elements(count: 3)
    let version = AppVersion(
      major: try numbers[0].integer(), minor: try numbers[1].integer(), patch: try numbers[2].integer())
    let issuer = try Self.name(payload.required("iss"))
    let subject = try Self.name(payload.required("sub"))
    let tokenDigest: Digest = try Self.bytes(payload.required("tok"))
    let issued = try payload.required("iat").integer()
    let conditions = try Conditions(payload)
    self.init(
      issuer: issuer, tokenDigest: tokenDigest, issued: issued, subject: subject, version: version,
      conditions: conditions)
  }

  private static func name(_ member: JSONMember) throws(JSONMistake) -> BoundedText<64> {
    guard let name = BoundedText<64>(try member.text(byteCounts: 1...64)) else {
      throw member.mistake(.byteCount(1...64))
    }
    return name
  }

  private static func bytes<Kind, let count: Int>(_ member: JSONMember) throws(JSONMistake) -> TypedBytes<Kind, count> {
    let text = Array(try member.text(byteCounts: 1...64).utf8)
    let mistake = member.mistake(.form("\(count) bytes as base64url"))
    let decoded: [UInt8]
    do throws(EncodingFault) { decoded = try decodePublicBase64URL(text.span) } catch { throw mistake }
    guard let bytes = TypedBytes<Kind, count>(decoded.span) else { throw mistake }
    return bytes
  }
}
