import COpenSSL
import HoldfastCore

/// A private key on one of NIST's curves, for key agreement and signatures.
///
/// Used by one thread at a time.
@safe
public struct ECPrivateKey: ~Copyable, Sendable {
  public let curve: NISTCurve
  /// The SEC1 uncompressed public point.
  public let publicPoint: [UInt8]
  let key: Handle
  private let agreement: Handle
  private var peer: PublicKeySlot

  /// A new key from libcrypto's generator. Source: FIPS 186-5 §A.2.2.
  public init(generatingOn curve: NISTCurve) throws(CryptographyFailure) {
    let context = try unsafe Handle(EVP_PKEY_CTX_new_from_name(nil, "EC", nil), freedBy: EVP_PKEY_CTX_free)
    try check(unsafe EVP_PKEY_keygen_init(context.pointer))
    try check(unsafe EVP_PKEY_CTX_set_group_name(context.pointer, cString(curve.groupName)))
    var made: OpaquePointer?
    try check(unsafe EVP_PKEY_generate(context.pointer, &made))
    try self.init(curve: curve, key: unsafe Handle(made, freedBy: EVP_PKEY_free))
  }

  /// The key of a big-endian `scalar` of exactly `curve.coordinateByteCount` bytes; throws unless it is in 1 ..< n.
  public init(curve: NISTCurve, scalar: Span<UInt8>) throws(CryptographyFailure) {
    guard scalar.count == curve.coordinateByteCount else { throw CryptographyFailure() }
    let number = try bigNumber(scalar)
    try self.init(curve: curve, key: makeKeyPair(curve: curve, scalar: number))
  }

  private init(curve: NISTCurve, key: consuming Handle) throws(CryptographyFailure) {
    let point = try encodedPoint(of: key, byteCount: curve.pointByteCount)
    let peer = try PublicKeySlot(curve: curve)
    let agreement = try unsafe Handle(
      EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil), freedBy: EVP_PKEY_CTX_free)
    try check(unsafe EVP_PKEY_derive_init(agreement.pointer))
    self.curve = curve
    self.publicPoint = point
    self.key = key
    self.agreement = agreement
    self.peer = peer
  }

  /// ECDH with a SEC1 uncompressed point: writes the x coordinate over `shared`, `curve.coordinateByteCount` bytes.
  ///
  /// Source: SP 800-56A §5.7.1.2. Throws for a point that is not on the curve or is at infinity.
  public mutating func agree(
    with point: Span<UInt8>, into shared: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    guard shared.count == curve.coordinateByteCount else { throw CryptographyFailure() }
    try peer.set(point)
    try check(unsafe EVP_PKEY_derive_set_peer_ex(agreement.pointer, peer.key.pointer, 0))
    var count = shared.count
    let result = unsafe shared.withUnsafeMutableBufferPointer {
      unsafe EVP_PKEY_derive(agreement.pointer, $0.baseAddress, &count)
    }
    guard result == 1, count == shared.count else {
      wipe(&shared)
      throw failure()
    }
  }

  /// Writes the scalar, big-endian, over `output`, `curve.coordinateByteCount` bytes: for a key file.
  public borrowing func writeScalar(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard output.count == curve.coordinateByteCount else { throw CryptographyFailure() }
    var number: OpaquePointer?
    try check(unsafe EVP_PKEY_get_bn_param(key.pointer, OSSL_PKEY_PARAM_PRIV_KEY, &number))
    let scalar = try unsafe Handle(number, freedBy: BN_clear_free)
    try unsafe writeBigNumber(scalar.pointer, into: &output)
  }
}

private func encodedPoint(of key: borrowing Handle, byteCount: Int) throws(CryptographyFailure) -> [UInt8] {
  var point = [UInt8](repeating: 0, count: byteCount)
  var count = 0
  try check(
    unsafe EVP_PKEY_get_octet_string_param(key.pointer, OSSL_PKEY_PARAM_PUB_KEY, &point, byteCount, &count))
  guard count == byteCount, point[0] == 4 else { throw CryptographyFailure() }
  return point
}
