import HoldfastCore
import HoldfastOpenSSL

/// Wycheproof's `EcdsaP1363Verify`, for P-256 with SHA-256: a signature r ‖ s over a message.
///
/// Source: C2SP/wycheproof, `schemas/ecdsa_p1363_verify_schema_v1.json`; IEEE P1363 for the signature.
struct EcdsaP1363Verify: ReplayableGroup {
  private let curve: String
  private let hash: String
  private let point: [UInt8]

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    // Wycheproof's older files call it `key`.
    let hasOldName = group.value["publicKey"] == nil && group.value["key"] != nil
    let key = try group.member(hasOldName ? "key" : "publicKey")
    curve = try key.member("curve").text()
    point = try key.member("uncompressed").bytes()
    hash = try group.member("sha").text()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("msg")
    let signature = try test.bytes("sig")
    guard curve == "secp256r1" else { return .skipped("curve \(curve)") }
    guard hash == "SHA-256" else { return .skipped("hash \(hash)") }
    guard let point = P256Point(point.span) else { return .refused("public key of \(point.count) bytes") }
    guard let signature = FixedBytes<64>(signature.span) else {
      return .refused("signature of \(signature.count) bytes")
    }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      var digest = cryptography.sha256()
      digest.append(message.span)
      try cryptography.p256Verify(key: point, digest: try digest.finish(), signature: signature)
      return .accepted
    } catch { return .refused("it does not verify") }
  }
}
