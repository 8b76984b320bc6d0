import HoldfastCore
import HoldfastOpenSSL

/// Wycheproof's `EcdsaVerify` and `EcdsaP1363Verify`: a signature over a message, on each curve and with each hash that
/// libcrypto has.
///
/// Source: C2SP/wycheproof, `schemas/ecdsa_verify_schema_v1.json` and `schemas/ecdsa_p1363_verify_schema_v1.json`.
struct EcdsaVerify<Encoding: SignatureEncoding>: ReplayableGroup {
  private let curve: String
  private let hash: String
  private let point: [UInt8]

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    // Older Wycheproof files name the member `key`.
    let hasOldName = group.value["publicKey"] == nil && group.value["key"] != nil
    let key = try group.member(hasOldName ? "key" : "publicKey")
    curve = try key.member("curve").text()
    point = try key.member("uncompressed").bytes()
    hash = try group.member("sha").text()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("msg")
    let signature = try test.bytes("sig")
    guard let curveOfKey = LibcryptoCurve(curve) else { return .skipped("curve \(curve)") }
    guard let hashOfMessage = LibcryptoHash(hash) else { return .skipped("hash \(hash)") }
    let isValid = Encoding.verifies(signature, of: message, hash: hashOfMessage, point: point, on: curveOfKey)
    return isValid ? .accepted : .refused("it does not verify")
  }
}

/// The form of an ECDSA signature.
protocol SignatureEncoding {
  /// Returns whether a signature in this form over a message was made with the private key of an uncompressed point.
  static func verifies(
    _ signature: [UInt8], of message: [UInt8], hash: borrowing LibcryptoHash, point: [UInt8], on curve: LibcryptoCurve
  ) -> Bool
}

/// A DER `ECDSA-Sig-Value`. Source: RFC 3279 §2.2.3.
enum DERSignature: SignatureEncoding {
  static func verifies(
    _ signature: [UInt8], of message: [UInt8], hash: borrowing LibcryptoHash, point: [UInt8], on curve: LibcryptoCurve
  ) -> Bool {
    guard let digest = hash.digest(message) else { return false }
    return curve.verifies(signature, digest: digest, point: point)
  }
}

/// r ‖ s, each as long as the order of the curve, as JOSE and COSE have them. Holdfast's own code verifies those on P-256 with SHA-256.
///
/// Source: IEEE P1363.
enum PairSignature: SignatureEncoding {
  static func verifies(
    _ signature: [UInt8], of message: [UInt8], hash: borrowing LibcryptoHash, point: [UInt8], on curve: LibcryptoCurve
  ) -> Bool {
    if curve.name == "secp256r1" && hash.name == "SHA-256" { return verifiesES256(signature, message, point) }
    guard let digest = hash.digest(message) else { return false }
    return curve.verifies(pair: signature, digest: digest, point: point)
  }

  private static func verifiesES256(_ signature: [UInt8], _ message: [UInt8], _ point: [UInt8]) -> Bool {
    guard let point = P256Point(point.span), let signature = FixedBytes<64>(signature.span) else { return false }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      var digest = cryptography.sha256()
      digest.append(message.span)
      try cryptography.p256Verify(key: point, digest: try digest.finish(), signature: signature)
      return true
    } catch { return false }
  }
}
