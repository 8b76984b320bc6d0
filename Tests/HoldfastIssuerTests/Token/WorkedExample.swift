import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

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

  func key(_ path: String) throws -> P256PrivateKey {
    let bytes = bytes(path)
    guard let scalar = Secret<32>(copying: bytes.span) else { throw CryptographyFailure() }
    return try P256PrivateKey(scalar: scalar)
  }

  func fixed<let count: Int>(_ path: String) -> FixedBytes<count> {
    let bytes = bytes(path)
    return FixedBytes(bytes.span)!
  }

  func secret<let count: Int>(_ path: String) -> Secret<count> {
    let bytes = bytes(path)
    return Secret(copying: bytes.span)!
  }

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

  private func decoded(_ path: String) -> FixedBytes<16> {
    let text = Array(text(path).utf8)
    var buffer = ByteBuffer<16>()
    try? buffer.append(base64URL: text.span)
    return FixedBytes(buffer.bytes)!
  }
}
