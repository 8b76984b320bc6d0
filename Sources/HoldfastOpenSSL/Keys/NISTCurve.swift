import COpenSSL

/// A prime curve of NIST.
///
/// Source: SP 800-186 §3.2.1.
public enum NISTCurve: Sendable {
  case p256, p384, p521

  /// The bytes of a coordinate, of a scalar and of an ECDH secret: 32, 48 or 66.
  public var coordinateByteCount: Int {
    switch self {
    case .p256: 32
    case .p384: 48
    case .p521: 66
    }
  }

  /// The bytes of a SEC1 uncompressed point, 0x04 ‖ x ‖ y.
  public var pointByteCount: Int { 1 + 2 * coordinateByteCount }

  var groupName: StaticString {
    switch self {
    case .p256: "P-256"
    case .p384: "P-384"
    case .p521: "P-521"
    }
  }

  var groupNumber: CInt {
    switch self {
    case .p256: NID_X9_62_prime256v1
    case .p384: NID_secp384r1
    case .p521: NID_secp521r1
    }
  }
}
