import COpenSSL
import HoldfastCore

/// ECDSA P-256 verification. The key object and its context are kept, and get a new point for each call.
///
/// Source: FIPS 186-5 §6.4.2; the signature is r ‖ s as in RFC 7518 §3.4 and RFC 9053 §2.1.
struct SignatureVerifier: ~Copyable {
  private var slot: PublicKeySlot
  private let context: Handle

  init() throws(CryptographyFailure) {
    let slot = try PublicKeySlot(curve: .p256)
    let context = try unsafe Handle(
      EVP_PKEY_CTX_new_from_pkey(nil, slot.key.pointer, nil), freedBy: EVP_PKEY_CTX_free)
    try check(unsafe EVP_PKEY_verify_init(context.pointer))
    self.slot = slot
    self.context = context
  }

  /// Throws unless `signature` (64 bytes) over `digest` was made with the private key of `point`.
  mutating func verify(
    point: P256Point, digest: Digest, signature: FixedBytes<64>
  ) throws(CryptographyFailure) {
    try slot.set(point.bytes)
    var encoded = InlineArray<80, UInt8>(repeating: 0)
    let count = try encodeDER(signature, into: &encoded)
    let result = unsafe digest.bytes.withUnsafeBufferPointer { digest in
      unsafe encoded.span.withUnsafeBufferPointer { encoded in
        unsafe EVP_PKEY_verify(context.pointer, encoded.baseAddress, count, digest.baseAddress, digest.count)
      }
    }
    try check(result)
  }
}

/// Writes r ‖ s as a DER `ECDSA-Sig-Value`, at most 72 bytes; returns the number of bytes. Source: RFC 3279 §2.2.3.
private func encodeDER(
  _ signature: FixedBytes<64>, into output: inout InlineArray<80, UInt8>
) throws(CryptographyFailure) -> Int {
  let pair = try unsafe Handle(ECDSA_SIG_new(), freedBy: ECDSA_SIG_free)
  let bytes = signature.bytes
  let r = try bigNumber(bytes.extracting(first: 32))
  let s = try bigNumber(bytes.extracting(last: 32))
  try check(unsafe ECDSA_SIG_set0(pair.pointer, BN_dup(r.pointer), BN_dup(s.pointer)))
  guard unsafe i2d_ECDSA_SIG(pair.pointer, nil) <= 80 else { throw failure() }
  var span = output.mutableSpan
  let count = unsafe span.withUnsafeMutableBufferPointer { output in
    var cursor = output.baseAddress
    return unsafe i2d_ECDSA_SIG(pair.pointer, &cursor)
  }
  guard count > 0 else { throw failure() }
  return Int(count)
}

/// ECDSA P-256 signing. The context is kept between calls.
///
/// Source: FIPS 186-5 §6.4.1; the signature is r ‖ s as in RFC 7518 §3.4 and RFC 9053 §2.1.
struct Signer: ~Copyable {
  private let context: Handle

  init(key: borrowing Handle) throws(CryptographyFailure) {
    let context = try unsafe Handle(EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil), freedBy: EVP_PKEY_CTX_free)
    try check(unsafe EVP_PKEY_sign_init(context.pointer))
    self.context = context
  }

  mutating func sign(_ digest: Digest) throws(CryptographyFailure) -> FixedBytes<64> {
    var encoded = InlineArray<80, UInt8>(repeating: 0)
    var count = 80
    var span = encoded.mutableSpan
    let result = unsafe digest.bytes.withUnsafeBufferPointer { digest in
      unsafe span.withUnsafeMutableBufferPointer { encoded in
        unsafe EVP_PKEY_sign(context.pointer, encoded.baseAddress, &count, digest.baseAddress, digest.count)
      }
    }
    try check(result)
    return try decodeDER(encoded.span.extracting(first: count))
  }
}

/// Reads a DER `ECDSA-Sig-Value` into r ‖ s. Source: RFC 3279 §2.2.3.
private func decodeDER(_ encoded: Span<UInt8>) throws(CryptographyFailure) -> FixedBytes<64> {
  let decoded = unsafe encoded.withUnsafeBufferPointer { encoded in
    var cursor = encoded.baseAddress
    return unsafe d2i_ECDSA_SIG(nil, &cursor, encoded.count)
  }
  let pair = try unsafe Handle(decoded, freedBy: ECDSA_SIG_free)
  var signature = FixedBytes<64>()
  var whole = signature.mutableBytes
  var r = whole._mutatingExtracting(first: 32)
  try unsafe writeBigNumber(ECDSA_SIG_get0_r(pair.pointer), into: &r)
  var s = whole._mutatingExtracting(last: 32)
  try unsafe writeBigNumber(ECDSA_SIG_get0_s(pair.pointer), into: &s)
  return signature
}
