import COpenSSL
import HoldfastCore

/// A NIST prime curve.
///
/// Source: SP 800-186 §3.2.1.
package enum NISTCurve: Sendable {
  /// The curve: P-256, P-384 or P-521.
  case p256, p384, p521

  /// The byte count of a coordinate, of a scalar and of an ECDH secret: 32, 48 or 66.
  package var coordinateByteCount: Int {
    switch self {
    case .p256: 32
    case .p384: 48
    case .p521: 66
    }
  }

  /// The byte count of a SEC1 uncompressed point, 0x04 ‖ x ‖ y.
  package var pointByteCount: Int { 1 + 2 * coordinateByteCount }

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

/// The parameters of a curve as libcrypto has them. Making them costs as much as half an ECDH, so each process makes them once.
///
/// Nothing changes them after that, so any number of threads may use them.
final class CurveParameters: Sendable {
  let group: Handle
  /// A key object with these parameters and without a point.
  fileprivate let template: Handle

  fileprivate init(_ curve: NISTCurve) throws(CryptographyFailure) {
    group = try unsafe Handle(EC_GROUP_new_by_curve_name(curve.groupNumber), freedBy: EC_GROUP_free)
    let context = try unsafe Handle(EVP_PKEY_CTX_new_from_name(nil, "EC", nil), freedBy: EVP_PKEY_CTX_free)
    try check(unsafe EVP_PKEY_paramgen_init(context.pointer))
    try check(unsafe EVP_PKEY_CTX_set_group_name(context.pointer, cString(curve.groupName)))
    var made: OpaquePointer?
    try check(unsafe EVP_PKEY_paramgen(context.pointer, &made))
    template = try unsafe Handle(made, freedBy: EVP_PKEY_free)
  }

  fileprivate static let p256 = try? CurveParameters(.p256)
  fileprivate static let p384 = try? CurveParameters(.p384)
  fileprivate static let p521 = try? CurveParameters(.p521)
}

extension NISTCurve {
  /// Returns the parameters; throws if libcrypto could not make them.
  func parameters() throws(CryptographyFailure) -> CurveParameters {
    let parameters =
      switch self {
      case .p256: CurveParameters.p256
      case .p384: CurveParameters.p384
      case .p521: CurveParameters.p521
      }
    guard let parameters else { throw CryptographyFailure() }
    return parameters
  }
}

/// A public key object of one curve that gets a new point for each use.
struct PublicKeySlot: ~Copyable {
  let key: Handle
  private let curve: NISTCurve

  init(curve: NISTCurve) throws(CryptographyFailure) {
    self.curve = curve
    key = try unsafe Handle(EVP_PKEY_dup(curve.parameters().template.pointer), freedBy: EVP_PKEY_free)
  }

  /// Sets a SEC1 uncompressed point; throws if it has another form, is the point at infinity, or is not on the curve.
  ///
  /// Source: SP 800-56A §5.6.2.3.4. The curves have cofactor 1, so this is the full check.
  mutating func set(_ point: Span<UInt8>) throws(CryptographyFailure) {
    guard point.count == curve.pointByteCount, point[0] == 4 else { throw CryptographyFailure() }
    let result = unsafe point.withUnsafeBufferPointer {
      unsafe EVP_PKEY_set1_encoded_public_key(key.pointer, $0.baseAddress, $0.count)
    }
    try check(result)
  }
}

/// Throws unless `point` is a SEC1 uncompressed point of `curve` and not at infinity. Source: SP 800-56A §5.6.2.3.4.
package func checkPoint(_ point: Span<UInt8>, on curve: NISTCurve) throws(CryptographyFailure) {
  var slot = try PublicKeySlot(curve: curve)
  try slot.set(point)
}
