import COpenSSL
import HoldfastCore

/// ECDSA P-256 signing, its context kept from call to call.
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
