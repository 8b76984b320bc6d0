import HoldfastCore
import HoldfastOpenSSL

/// Wycheproof's `EcdhEcpointTest`: the x coordinate of a private key times a SEC1 point, on each curve that Holdfast has.
///
/// Source: C2SP/wycheproof, `schemas/ecdh_ecpoint_test_schema_v1.json`.
struct EcdhEcpointTest: ReplayableGroup {
  private let curve: String

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    curve = try group.member("curve").text()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let point = try test.bytes("public")
    let scalar = try test.bytes("private").drop { $0 == 0 }
    let expected = try test.bytes("shared")
    guard let curve = NISTCurve(wycheproofName: curve) else { return .skipped("curve \(curve)") }
    if test.result == .valid, isCompressed(point, on: curve) { return .skipped("compressed point") }
    let padding = curve.coordinateByteCount - scalar.count
    guard padding >= 0 else { return .refused("private key of \(scalar.count) bytes") }
    let padded = [UInt8](repeating: 0, count: padding) + scalar
    var shared = [UInt8](repeating: 0, count: curve.coordinateByteCount)
    do throws(CryptographyFailure) {
      var key = try ECPrivateKey(curve: curve, scalar: padded.span)
      var output = shared.mutableSpan
      try key.agree(with: point.span, into: &output)
    } catch { return .refused("no shared secret") }
    return shared == expected ? .accepted : .differs("shared")
  }

  /// Whether a point is in the short form that Holdfast never takes. Source: SEC 1 §2.3.3.
  private func isCompressed(_ point: [UInt8], on curve: NISTCurve) -> Bool {
    point.count == 1 + curve.coordinateByteCount && (point[0] == 2 || point[0] == 3)
  }
}

extension NISTCurve {
  fileprivate init?(wycheproofName name: String) {
    switch name {
    case "secp256r1": self = .p256
    case "secp384r1": self = .p384
    case "secp521r1": self = .p521
    default: return nil
    }
  }
}
