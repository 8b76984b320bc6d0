import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL

/// Tokens in JOSE: a compact JWS in a compact JWE, each part of which may be spelt or filled in another way.
///
/// Source: RFC 7515 §7.1, RFC 7516 §5.1 and §7.1, RFC 7518 §4.6.
extension Forger {
  private typealias Members = [(name: String, value: String)]

  /// Returns a JWS of claims, or the bare claims.
  mutating func jws(_ claims: borrowing MeasurementClaims, _ draft: TokenDraft) throws(CryptographyFailure) -> [UInt8] {
    var json: [UInt8] = []
    claims.appendJSON(to: &json)
    guard let object = try? JSONValue(parsing: json.span, byteLimit: json.count) else { throw CryptographyFailure() }
    var members = Self.members(of: object)
    if draft.hasUnknownClaim { members.append(("unk", "1")) }
    let payload = Self.object(members, .claims, draft)
    guard draft.isSigned else { return payload }
    let header: Members = [
      ("alg", draft.seal.isMAC ? "\"HS256\"" : "\"ES256\""), ("kid", "\"\(base64URL(draft.keyID.bytes))\""),
      ("typ", "\"\(draft.type)+jwt\""),
    ]
    let input =
      Self.spelt(Self.object(header, .signedHeader, draft), .signedHeader, draft) + [UInt8(ascii: ".")]
      + Self.spelt(payload, .claims, draft)
    var seal = try seal(input, as: draft.seal)
    switch draft.jose.signature {
    case .fixed: break
    case .der: seal = Self.der(signature: seal)
    case .extended: seal.append(0)
    }
    return input + [UInt8(ascii: ".")] + Self.spelt(seal, .signature, draft)
  }

  /// Encrypts contents as a JWE.
  func jwe(_ content: [UInt8], _ draft: TokenDraft) throws(CryptographyFailure) -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    var random = SystemRandom()
    let changes = draft.jose
    let agreement = try Agreement(for: draft)
    let ephemeralKey = Self.members(of: publicJWK(curve: .p256, point: [UInt8](agreement.point.bytes)))
    let header: Members = [
      ("alg", "\"\(changes.management.rawValue)\""), ("enc", "\"\(changes.encryption.rawValue)\""),
      ("cty", "\"JWT\""),
      ("kid", "\"\(base64URL(try keyID(of: draft.recipient, using: &cryptography).bytes))\""),
      ("epk", String(decoding: Self.object(ephemeralKey, .ephemeralKey, draft), as: UTF8.self)),
    ]
    let encodedHeader = Self.spelt(Self.object(header, .encryptedHeader, draft), .encryptedHeader, draft)
    let derived = try Self.derive(from: agreement.shared, changes)
    var (key, wrapped): ([UInt8], [UInt8]) = ([UInt8](derived.bytes), [])
    if case .agreeAndWrap = changes.management.method {
      key = try Self.randomBytes(changes.encryption.keyByteCount, &random)
      wrapped = try AESKeyWrap.wrap(key: derived.bytes, plain: key.span)
    }
    let vector = try Self.randomBytes(changes.encryption.vectorByteCount, &random)
    let plaintext = changes.isCompressed ? Self.compressed(content) : content
    let (ciphertext, tag) = try changes.encryption.seal(
      plaintext.span, key: key.span, vector: vector.span, authenticating: encodedHeader.span)
    let parts: [(JOSEChanges.Part, [UInt8])] = [
      (.encryptedKey, changes.encryptedKey ?? wrapped), (.vector, vector), (.ciphertext, ciphertext),
      (.tag, [UInt8](tag.prefix(changes.tagByteCount ?? tag.count))),
    ]
    return parts.reduce(encodedHeader) { $0 + [UInt8(ascii: ".")] + Self.spelt($1.1, $1.0, draft) }
  }

  /// Derives the key of the content, or the one under which it is wrapped, from the x coordinate on which both ends agreed.
  private static func derive(
    from shared: borrowing Secret<32>, _ changes: JOSEChanges
  ) throws(CryptographyFailure) -> SecretBytes {
    var (name, count) = (changes.encryption.rawValue, changes.encryption.keyByteCount)
    if case .agreeAndWrap(let wrapping) = changes.management.method {
      (name, count) = (changes.management.rawValue, wrapping)
    }
    return try shared.withBytes { (bytes: Span<UInt8>) throws(CryptographyFailure) in
      do throws(JOSEFault) {
        return try JWEParties().deriveKey(from: bytes, algorithm: name, byteCount: count)
      } catch { throw CryptographyFailure() }
    }
  }

  private static func randomBytes(_ count: Int, _ random: inout SystemRandom) throws(CryptographyFailure) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    do throws(RandomFailure) {
      var span = bytes.mutableSpan
      try random.fill(&span)
    } catch { throw CryptographyFailure() }
    return bytes
  }

  private static func members(of object: JSONValue) -> Members {
    (object.members ?? []).map { (name: $0.0, value: String(decoding: $0.1.compact(), as: UTF8.self)) }
  }

  /// Writes an object in JSON, with the draft's changes.
  ///
  /// If the base64url of the object is to have padding or spare bits, spaces give it a length for which there are some.
  private static func object(_ members: Members, _ part: JOSEChanges.Part, _ draft: TokenDraft) -> [UInt8] {
    var members = members
    for change in draft.jose.members[part] ?? [] { change.apply(to: &members) }
    var text = Array("{\(members.map { "\"\($0.name)\":\($0.value)" }.joined(separator: ","))}".utf8)
    text += draft.jose.tails[part] ?? []
    while draft.jose.spellings[part] != nil, text.count % 3 != 1 { text.insert(UInt8(ascii: " "), at: 1) }
    return text
  }

  /// Writes bytes in base64url, or in the draft's spelling of it.
  private static func spelt(_ bytes: [UInt8], _ part: JOSEChanges.Part, _ draft: TokenDraft) -> [UInt8] {
    var text = Array(base64URL(bytes.span).utf8)
    switch draft.jose.spellings[part] {
    case nil: break
    case .padded: while text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
    case .trailingBits:
      // One byte more than a multiple of three leaves four zero bits in the last character: A, Q, g or w.
      if let last = text.indices.last { text[last] += 1 }
    case .standardAlphabet:
      for index in text.indices {
        if text[index] == UInt8(ascii: "-") { text[index] = UInt8(ascii: "+") }
        if text[index] == UInt8(ascii: "_") { text[index] = UInt8(ascii: "/") }
      }
    case .broken: text.insert(0x0a, at: text.count / 2)
    }
    return text
  }

  /// Writes r and s as a sequence of two integers in DER. Source: RFC 3279 §2.2.3.
  private static func der(signature: [UInt8]) -> [UInt8] {
    let integers = [signature.prefix(32), signature.suffix(32)].map { number in
      var bytes = Array(number.drop { $0 == 0 })
      if bytes.first.map({ $0 >= 0x80 }) ?? true { bytes.insert(0, at: 0) }
      return [0x02, UInt8(bytes.count)] + bytes
    }
    return [0x30, UInt8(integers[0].count + integers[1].count)] + integers[0] + integers[1]
  }

  /// Writes bytes as one stored block of DEFLATE. Source: RFC 1951 §3.2.4.
  private static func compressed(_ bytes: [UInt8]) -> [UInt8] {
    let (low, high) = (UInt8(bytes.count & 0xff), UInt8(bytes.count >> 8))
    return [0x01, low, high, ~low, ~high] + bytes
  }
}
