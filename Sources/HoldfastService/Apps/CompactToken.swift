import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL

/// The kinds of compact JWS that the service signs for apps and their backends. A token of one kind is none of another.
enum CompactTokenKind: String {
  case app = "holdfast-app+jwt"
  case custom = "holdfast-custom+jwt"
  case configuration = "holdfast-configuration+jwt"
  case postureRules = "holdfast-posture-rules+jwt"
}

/// A compact JWS without a bound on its length.
///
/// Source: RFC 7515 §7.1, RFC 7518 §3.2 and §3.4. ``JWSKey`` holds secret payloads, of which a device reads at most 3072 bytes; these
/// are neither.
enum CompactToken {
  /// Signs claims with ES256 under a header of `alg`, `kid` and `typ`.
  ///
  /// - Parameter id: The value of `kid`; nil for the id of the key.
  static func signed(
    _ claims: JSONValue, as kind: CompactTokenKind, by key: MemorySigningKey, named id: KeyID? = nil
  ) throws(FleetFault) -> String {
    do throws(CryptographyFailure) {
      var cryptography = OpenSSLCryptography()
      let publicID = try keyID(of: key.publicPoint, using: &cryptography)
      let id = id ?? publicID
      let input = signingInput([("alg", "ES256"), ("kid", base64URL(id.bytes)), ("typ", kind.rawValue)], claims)
      var hash = cryptography.sha256()
      hash.append(input.span)
      let signature = try key.sign(hash.finish())
      return text(input, signature.bytes)
    } catch { throw .cryptography }
  }

  /// Signs claims with HS256 under a header of `alg`, `kid` and `typ`; the first key of a domain has no `kid`.
  ///
  /// - Parameters:
  ///   - key: The secret, 32 bytes.
  ///   - epoch: The number in the key, from 1.
  static func signed(
    _ claims: JSONValue, as kind: CompactTokenKind, sharedKey key: borrowing Secret<32>, epoch: UInt64
  ) throws(FleetFault) -> String {
    let id = epoch == 1 ? [] : [("kid", String(epoch))]
    let input = signingInput([("alg", "HS256")] + id + [("typ", kind.rawValue)], claims)
    var code = FixedBytes<32>()
    do throws(CryptographyFailure) {
      var bytes = code.mutableBytes
      try key.withBytes { (key) throws(CryptographyFailure) in
        try HMAC.sha256.authenticate(input.span, key: key, into: &bytes)
      }
    } catch { throw .cryptography }
    return text(input, code.bytes)
  }

  private static func signingInput(_ header: [(String, String)], _ claims: JSONValue) -> [UInt8] {
    let header = JSONValue.object(header.map { ($0, .string($1)) }).compact()
    let payload = claims.compact()
    var input: [UInt8] = []
    input.append(asBase64URL: header.span)
    input.append(UInt8(ascii: "."))
    input.append(asBase64URL: payload.span)
    return input
  }

  private static func text(_ input: [UInt8], _ signature: Span<UInt8>) -> String {
    var text = input
    text.append(UInt8(ascii: "."))
    text.append(asBase64URL: signature)
    return String(decoding: text, as: UTF8.self)
  }
}

extension FleetKeys {
  /// Derives the key with which a domain's HS256 tokens are signed, 32 bytes:
  /// `HMAC-SHA-256(account secret, "holdfast/1 domain key" ‖ 0x00 ‖ name)`, and from the second key on, `‖ 0x00 ‖ epoch as decimal
  /// digits` after the name.
  func domainKey(_ name: String, epoch: UInt64) throws(FleetFault) -> Secret<32> {
    let suffix = epoch == 1 ? [] : [0] + Array(String(epoch).utf8)
    return try derivedKey("holdfast/1 domain key", Array(name.utf8) + suffix)
  }

  /// Derives the key with which apps sign messages, 32 bytes:
  /// `HMAC-SHA-256(account secret, "holdfast/1 message signing" ‖ 0x00 ‖ epoch as decimal digits)`.
  func messageKey() throws(FleetFault) -> Secret<32> {
    try derivedKey("holdfast/1 message signing", Array(String(apps.messageEpoch).utf8))
  }

  /// Derives the keys of decoys, 32 bytes each, which stay as long as the keys that they stand for:
  /// `HMAC-SHA-256(account secret, "holdfast/1 decoy" ‖ 0x00 ‖ epoch as decimal digits ‖ 0x00 ‖ domain)`; the domain is empty for the
  /// key with which apps sign messages.
  func decoyKey(domain: String = "", epoch: UInt64) throws(FleetFault) -> Secret<32> {
    try derivedKey("holdfast/1 decoy", Array(String(epoch).utf8) + [0] + Array(domain.utf8))
  }

  private func derivedKey(_ label: StaticString, _ context: [UInt8]) throws(FleetFault) -> Secret<32> {
    var message = Array(label.description.utf8) + [0]
    message += context
    var derived = SecretBytes(zeros: 32)
    do throws(CryptographyFailure) {
      var bytes = derived.mutableBytes
      try withSigner { (signer) throws(CryptographyFailure) in
        try HMAC.sha256.authenticate(message.span, key: signer.account.account.bytes, into: &bytes)
      }
    } catch { throw .cryptography }
    guard let key = Secret<32>(copying: derived.bytes) else { throw .cryptography }
    return key
  }
}
