import COpenSSL
import HoldfastCore

/// A public key object of one curve that is given a new point for each use: making one anew costs half an ECDH.
struct PublicKeySlot: ~Copyable {
  let key: Handle
  private let curve: NISTCurve

  init(curve: NISTCurve) throws(CryptographyFailure) {
    self.curve = curve
    let context = try unsafe Handle(EVP_PKEY_CTX_new_from_name(nil, "EC", nil), freedBy: EVP_PKEY_CTX_free)
    try check(unsafe EVP_PKEY_paramgen_init(context.pointer))
    try check(unsafe EVP_PKEY_CTX_set_group_name(context.pointer, cString(curve.groupName)))
    var made: OpaquePointer?
    try check(unsafe EVP_PKEY_paramgen(context.pointer, &made))
    key = try unsafe Handle(made, freedBy: EVP_PKEY_free)
  }

  /// Takes a SEC1 uncompressed point; throws when it is in another form, the point at infinity or not on the curve.
  ///
  /// Source: SP 800-56A §5.6.2.3.4; the curves have cofactor 1, so that this is the full check.
  mutating func set(_ point: Span<UInt8>) throws(CryptographyFailure) {
    guard point.count == curve.pointByteCount, point[0] == 4 else { throw CryptographyFailure() }
    let result = unsafe point.withUnsafeBufferPointer {
      unsafe EVP_PKEY_set1_encoded_public_key(key.pointer, $0.baseAddress, $0.count)
    }
    try check(result)
  }
}

/// Throws unless `point` is a SEC1 uncompressed point of `curve` and not at infinity. Source: SP 800-56A §5.6.2.3.4.
public func checkPoint(_ point: Span<UInt8>, on curve: NISTCurve) throws(CryptographyFailure) {
  var slot = try PublicKeySlot(curve: curve)
  try slot.set(point)
}
