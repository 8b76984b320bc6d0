import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// Wycheproof's `EcdhEcpointTest`: the x coordinate of a private key times a SEC1 point, on each curve that libcrypto has.
///
/// Source: C2SP/wycheproof, `schemas/ecdh_ecpoint_test_schema_v1.json`.
struct EcdhEcpointTest: ReplayableGroup {
  private let curve: String

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    curve = try group.member("curve").text()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let point = try test.bytes("public")
    let scalar = try test.bytes("private")
    let expected = try test.bytes("shared")
    guard let curve = AgreementCurve(curve) else { return .skipped("curve \(curve)") }
    if test.result == .valid, isCompressed(point, on: curve) { return .skipped("compressed point") }
    return curve.agree(scalar: scalar, point: point, expected: expected)
  }

  /// Returns whether a point is in the compressed form, which Holdfast never accepts. Source: SEC 1 §2.3.3.
  private func isCompressed(_ point: [UInt8], on curve: AgreementCurve) -> Bool {
    point.count == 1 + curve.libcrypto.coordinateByteCount && (point[0] == 2 || point[0] == 3)
  }
}

/// Wycheproof's `EcdhTest`: as ``EcdhEcpointTest``, with the point in a DER `SubjectPublicKeyInfo`.
///
/// Keys that spell out the parameters of their curve are refused, as are compressed points and other encodings.
/// Source: C2SP/wycheproof, `schemas/ecdh_test_schema_v1.json`.
struct EcdhTest: ReplayableGroup {
  private let curve: String

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    curve = try group.member("curve").text()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let encoded = try test.bytes("public")
    let scalar = try test.bytes("private")
    let expected = try test.bytes("shared")
    guard let curve = AgreementCurve(curve) else { return .skipped("curve \(curve)") }
    guard let point = curve.libcrypto.point(inSubjectPublicKeyInfo: encoded) else { return .refused("public key") }
    return curve.agree(scalar: scalar, point: point, expected: expected)
  }
}

/// Wycheproof's `EcdhWebcryptoTest`: as ``EcdhEcpointTest``, with both keys as JSON Web Keys.
///
/// Source: C2SP/wycheproof, `schemas/ecdh_webcrypto_test_schema_v1.json`; RFC 7518 §6.2, RFC 8812 §3.1 for secp256k1.
struct EcdhWebcryptoTest: ReplayableGroup {
  private let curve: String

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    curve = try group.member("curve").text()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let publicKey = try test.node.member("public").value
    let privateKey = try test.node.member("private").value
    let expected = try test.bytes("shared")
    guard ["P-256", "P-384", "P-521"].contains(curve) else {
      return replay(publicKey, privateKey, expected, onOtherCurve: curve)
    }
    do throws(KeyFault) {
      let point = try JWK.publicKey(in: publicKey).publicPoint()
      var key = try JWK.parse(privateKey.compact().span).ellipticPrivateKey()
      var shared = [UInt8](repeating: 0, count: key.curve.coordinateByteCount)
      var output = shared.mutableSpan
      do throws(CryptographyFailure) { try key.agree(with: point.span, into: &output) } catch {
        return .refused("no shared secret")
      }
      return shared == expected ? .accepted : .differs("shared")
    } catch { return .refused("a key") }
  }

  private func replay(
    _ publicKey: JSONValue, _ privateKey: JSONValue, _ expected: [UInt8], onOtherCurve name: String
  ) -> Outcome {
    guard let curve = AgreementCurve(name) else { return .skipped("curve \(name)") }
    guard [publicKey, privateKey].allSatisfy({ $0["kty"]?.text == "EC" && $0["crv"]?.text == name }),
      let x = coordinate("x", of: publicKey, on: curve), let y = coordinate("y", of: publicKey, on: curve),
      let scalar = coordinate("d", of: privateKey, on: curve)
    else { return .refused("a key") }
    return curve.agree(scalar: scalar, point: [4] + x + y, expected: expected)
  }

  private func coordinate(_ name: String, of key: JSONValue, on curve: AgreementCurve) -> [UInt8]? {
    guard let text = key[name]?.text, let bytes = try? decodePublicBase64URL(text) else { return nil }
    return bytes.count == curve.libcrypto.coordinateByteCount ? bytes : nil
  }
}

/// A curve for key agreement: Holdfast's own code on the curves that it uses, libcrypto's on others.
private struct AgreementCurve {
  let libcrypto: LibcryptoCurve
  private let own: NISTCurve?

  init?(_ name: String) {
    guard let curve = LibcryptoCurve(name) else { return nil }
    libcrypto = curve
    own =
      switch name {
      case "secp256r1": .p256
      case "secp384r1": .p384
      case "secp521r1": .p521
      default: nil
      }
  }

  /// Compares the shared secret of a big-endian scalar, with leading zeros or none, and a point with the expected one.
  func agree(scalar: [UInt8], point: [UInt8], expected: [UInt8]) -> Outcome {
    let scalar = scalar.drop { $0 == 0 }
    guard let own else {
      guard let shared = libcrypto.agree(scalar: Array(scalar), point: point) else {
        return .refused("no shared secret")
      }
      return shared == expected ? .accepted : .differs("shared")
    }
    let padding = own.coordinateByteCount - scalar.count
    guard padding >= 0 else { return .refused("private key of \(scalar.count) bytes") }
    let padded = [UInt8](repeating: 0, count: padding) + scalar
    var shared = [UInt8](repeating: 0, count: own.coordinateByteCount)
    do throws(CryptographyFailure) {
      var key = try ECPrivateKey(curve: own, scalar: padded.span)
      var output = shared.mutableSpan
      try key.agree(with: point.span, into: &output)
    } catch { return .refused("no shared secret") }
    return shared == expected ? .accepted : .differs("shared")
  }
}
