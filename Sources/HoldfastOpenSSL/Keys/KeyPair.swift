import COpenSSL
import HoldfastCore

/// A libcrypto key pair from a scalar, which must be in 1 ..< n; the public point is computed.
///
/// Timing: libcrypto multiplies in constant time.
func makeKeyPair(curve: NISTCurve, scalar: borrowing Handle) throws(CryptographyFailure) -> Handle {
  let group = try unsafe Handle(EC_GROUP_new_by_curve_name(curve.groupNumber), freedBy: EC_GROUP_free)
  let order = unsafe EC_GROUP_get0_order(group.pointer)
  guard unsafe BN_is_zero(scalar.pointer) == 0, unsafe BN_cmp(scalar.pointer, order) < 0 else { throw failure() }
  let point = try unsafe Handle(EC_POINT_new(group.pointer), freedBy: EC_POINT_free)
  try check(unsafe EC_POINT_mul(group.pointer, point.pointer, scalar.pointer, nil, nil, nil))
  var encoded = [UInt8](repeating: 0, count: curve.pointByteCount)
  let written = unsafe EC_POINT_point2oct(
    group.pointer, point.pointer, POINT_CONVERSION_UNCOMPRESSED, &encoded, encoded.count, nil)
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

/// A libcrypto key pair of `algorithm` from the parameters pushed on `builder`.
func makeKey(algorithm: String, from builder: borrowing Handle) throws(CryptographyFailure) -> Handle {
  guard let parameters = unsafe OSSL_PARAM_BLD_to_param(builder.pointer) else { throw failure() }
  defer { unsafe OSSL_PARAM_free(parameters) }
  let context = try unsafe Handle(EVP_PKEY_CTX_new_from_name(nil, algorithm, nil), freedBy: EVP_PKEY_CTX_free)
  try check(unsafe EVP_PKEY_fromdata_init(context.pointer))
  var made: OpaquePointer?
  try check(unsafe EVP_PKEY_fromdata(context.pointer, &made, holdfast_key_pair, parameters))
  return try unsafe Handle(made, freedBy: EVP_PKEY_free)
}
