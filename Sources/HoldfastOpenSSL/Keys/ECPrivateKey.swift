import COpenSSL
import HoldfastCore

/// A private key on a NIST curve, for key agreement and signatures.
///
/// Only one thread at a time may use it.
@safe
package struct ECPrivateKey: ~Copyable, Sendable {
  /// The curve of the key.
  package let curve: NISTCurve
  /// The public point, in SEC1 uncompressed form.
  package let publicPoint: [UInt8]
  let key: Handle
  private let agreement: Handle
  private var peer: PublicKeySlot

  /// Generates a key with libcrypto's generator. Source: FIPS 186-5 §A.2.2.
  package init(generatingOn curve: NISTCurve) throws(CryptographyFailure) {
    let context = try unsafe Handle(EVP_PKEY_CTX_new_from_name(nil, "EC", nil), freedBy: EVP_PKEY_CTX_free)
    try check(unsafe EVP_PKEY_keygen_init(context.pointer))
    try check(unsafe EVP_PKEY_CTX_set_group_name(context.pointer, cString(curve.groupName)))
    var made: OpaquePointer?
    try check(unsafe EVP_PKEY_generate(context.pointer, &made))
    try self.init(curve: curve, key: unsafe Handle(made, freedBy: EVP_PKEY_free))
  }

  /// Imports a big-endian `scalar` of exactly `curve.coordinateByteCount` bytes; throws unless it is in 1 ..< n.
  package init(curve: NISTCurve, scalar: Span<UInt8>) throws(CryptographyFailure) {
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

  /// Performs ECDH with a SEC1 uncompressed point: writes the x coordinate, `curve.coordinateByteCount` bytes, to `shared`.
  ///
  /// Source: SP 800-56A §5.7.1.2.
  /// - Throws: `CryptographyFailure` if the point is not on the curve or is at infinity, or `shared` has another length.
  package mutating func agree(
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

  /// Writes the scalar, big-endian, `curve.coordinateByteCount` bytes, to `output`, for a key file.
  package borrowing func writeScalar(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
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

/// A P-256 private key in this process's memory, for key agreement and signatures.
///
/// Only one thread at a time may use it.
@safe
public struct P256PrivateKey: ~Copyable, AgreementKey, Sendable {
  /// The public point: x and y, 32 bytes each.
  public let publicPoint: P256Point
  private var key: ECPrivateKey
  private var signer: Signer?

  /// Generates a key with libcrypto's generator. Source: FIPS 186-5 §A.2.2.
  public init() throws(CryptographyFailure) {
    try self.init(ECPrivateKey(generatingOn: .p256))
  }

  /// Imports a big-endian scalar; throws unless it is in 1 ..< n.
  public init(scalar: borrowing Secret<32>) throws(CryptographyFailure) {
    let key = try scalar.withBytes { (scalar) throws(CryptographyFailure) in
      try ECPrivateKey(curve: .p256, scalar: scalar)
    }
    try self.init(key)
  }

  private init(_ key: consuming ECPrivateKey) throws(CryptographyFailure) {
    guard let point = P256Point(key.publicPoint.span) else { throw CryptographyFailure() }
    publicPoint = point
    self.key = key
  }

  /// Returns the scalar, big-endian, for a key file.
  public borrowing func scalar() throws(CryptographyFailure) -> Secret<32> {
    var scalar = Secret<32>()
    try scalar.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try key.writeScalar(into: &bytes)
    }
    return scalar
  }

  /// Performs ECDH: writes the x coordinate of this key times `peer`, 32 bytes. Source: SP 800-56A §5.7.1.2.
  ///
  /// - Throws: `CryptographyFailure` if `peer` is not on the curve.
  public mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure) {
    try shared.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try key.agree(with: peer.bytes, into: &bytes)
    }
  }

  /// Returns an ECDSA signature, r ‖ s of 64 bytes, over a SHA-256 digest. Source: FIPS 186-5 §6.4.1.
  ///
  /// Timing: libcrypto signs in constant time, with a random nonce.
  public mutating func sign(_ digest: Digest) throws(CryptographyFailure) -> FixedBytes<64> {
    if signer == nil { signer = try Signer(key: key.key) }
    return try signer!.sign(digest)
  }
}

/// Returns a libcrypto key pair for a scalar, which must be in 1 ..< n. The public point is computed.
///
/// Timing: libcrypto multiplies in constant time.
func makeKeyPair(curve: NISTCurve, scalar: borrowing Handle) throws(CryptographyFailure) -> Handle {
  let group = unsafe try curve.parameters().group.pointer
  let order = unsafe EC_GROUP_get0_order(group)
  guard unsafe BN_is_zero(scalar.pointer) == 0, unsafe BN_cmp(scalar.pointer, order) < 0 else { throw failure() }
  let point = try unsafe Handle(EC_POINT_new(group), freedBy: EC_POINT_free)
  try check(unsafe EC_POINT_mul(group, point.pointer, scalar.pointer, nil, nil, nil))
  var encoded = [UInt8](repeating: 0, count: curve.pointByteCount)
  let written = unsafe EC_POINT_point2oct(
    group, point.pointer, POINT_CONVERSION_UNCOMPRESSED, &encoded, encoded.count, nil)
  guard written == encoded.count else { throw failure() }

  let builder = try unsafe Handle(OSSL_PARAM_BLD_new(), freedBy: OSSL_PARAM_BLD_free)
  try check(
    unsafe OSSL_PARAM_BLD_push_utf8_string(builder.pointer, cString("group"), cString(curve.groupName), 0))
  try check(unsafe OSSL_PARAM_BLD_push_BN(builder.pointer, cString("priv"), scalar.pointer))
  return try unsafe encoded.span.withUnsafeBufferPointer { (encoded) throws(CryptographyFailure) in
    try check(
      unsafe OSSL_PARAM_BLD_push_octet_string(
        builder.pointer, cString("pub"), encoded.baseAddress, encoded.count))
    return try makeKey(algorithm: "EC", from: builder)
  }
}

/// Returns a libcrypto key pair of `algorithm` from the parameters in `builder`.
func makeKey(algorithm: String, from builder: borrowing Handle) throws(CryptographyFailure) -> Handle {
  guard let parameters = unsafe OSSL_PARAM_BLD_to_param(builder.pointer) else { throw failure() }
  defer { unsafe OSSL_PARAM_free(parameters) }
  let context = try unsafe Handle(EVP_PKEY_CTX_new_from_name(nil, algorithm, nil), freedBy: EVP_PKEY_CTX_free)
  try check(unsafe EVP_PKEY_fromdata_init(context.pointer))
  var made: OpaquePointer?
  try check(unsafe EVP_PKEY_fromdata(context.pointer, &made, holdfast_key_pair, parameters))
  return try unsafe Handle(made, freedBy: EVP_PKEY_free)
}

/// Returns a libcrypto integer from big-endian bytes. It is wiped when it goes out of scope.
func bigNumber(_ bytes: Span<UInt8>) throws(CryptographyFailure) -> Handle {
  guard let count = CInt(exactly: bytes.count) else { throw CryptographyFailure() }
  let number = try unsafe Handle(BN_secure_new(), freedBy: BN_clear_free)
  unsafe BN_set_flags(number.pointer, BN_FLG_CONSTTIME)
  let result = unsafe bytes.withUnsafeBufferPointer { unsafe BN_bin2bn($0.baseAddress, count, number.pointer) }
  guard unsafe result != nil else { throw failure() }
  return number
}

/// Fills `output` with a libcrypto integer, big-endian, with leading zeros; throws if it does not fit.
func writeBigNumber(_ number: OpaquePointer?, into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
  guard let count = CInt(exactly: output.count) else { throw CryptographyFailure() }
  let written = unsafe output.withUnsafeMutableBufferPointer { unsafe BN_bn2binpad(number, $0.baseAddress, count) }
  guard written == count else { throw failure() }
}
