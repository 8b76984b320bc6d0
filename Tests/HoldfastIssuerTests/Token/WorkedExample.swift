import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport

/// The worked example of the protocol, which an independent implementation made.
struct WorkedExample {
  let root: JSONValue

  init() throws {
    root = try fixture("Interop/worked-example.json")
  }

  func text(_ path: String) -> String {
    path.split(separator: ".").reduce(root) { $0[String($1)] ?? .null }.text ?? ""
  }

  func bytes(_ path: String) -> [UInt8] { hex(text(path)) }

  func key(_ path: String) throws -> P256PrivateKey { try P256PrivateKey(scalar: secret(path)) }

  func fixed<Kind, let count: Int>(_ path: String) -> TypedBytes<Kind, count> { TestSupport.fixed(bytes(path)) }

  func secret<let count: Int>(_ path: String) -> Secret<count> { TestSupport.secret(bytes(path)) }

  /// The claims of the example's tokens.
  func claims() -> MeasurementClaims {
    MeasurementClaims(
      issuer: BoundedText("issuer.example" as StaticString), subject: BoundedText("app" as StaticString),
      audience: deviceID, expires: 1_790_003_600, issuedAt: 1_790_000_000,
      tokenID: tokenID, integrity: secret("measurement.im"), device: secret("measurement.dm"),
      proofKey: secret("measurement.mpk"), generation: 1)
  }

  var deviceID: DeviceID { decoded("claims_json.aud") }
  var tokenID: TokenID { decoded("claims_json.jti") }

  private func decoded<Kind>(_ path: String) -> TypedBytes<Kind, 16> {
    let text = Array(text(path).utf8)
    var buffer = ByteBuffer<16>()
    try? buffer.append(base64URL: text.span)
    return TypedBytes(buffer.bytes)!
  }
}
