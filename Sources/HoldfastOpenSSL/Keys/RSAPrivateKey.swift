import COpenSSL
import HoldfastCore

/// An RSA private key for OAEP.
///
/// It has at least 2048 bits, as RFC 7518 §4.3 requires.
@safe
package struct RSAPrivateKey: ~Copyable, Sendable {
  private let key: Handle

  /// The parameters of a private JWK, big-endian. Source: RFC 7518 §6.3.
  @safe
  package struct Components: ~Copyable {
    /// The modulus `n`.
    package var modulus: [UInt8]
    /// The public exponent `e`.
    package var publicExponent: [UInt8]
    /// The private exponent `d`.
    package var privateExponent: SecretBytes
    /// The first prime factor `p`.
    package var firstPrime: SecretBytes
    /// The second prime factor `q`.
    package var secondPrime: SecretBytes
    /// The exponent `dp` of the first prime factor.
    package var firstExponent: SecretBytes
    /// The exponent `dq` of the second prime factor.
    package var secondExponent: SecretBytes
    /// The coefficient `qi`, the inverse of the second prime factor modulo the first.
    package var coefficient: SecretBytes

    /// Takes over the parameters. They are checked when a key is made from them.
    package init(
      modulus: [UInt8], publicExponent: [UInt8], privateExponent: consuming SecretBytes,
      firstPrime: consuming SecretBytes, secondPrime: consuming SecretBytes, firstExponent: consuming SecretBytes,
      secondExponent: consuming SecretBytes, coefficient: consuming SecretBytes
    ) {
      self.modulus = modulus
      self.publicExponent = publicExponent
      self.privateExponent = privateExponent
      self.firstPrime = firstPrime
      self.secondPrime = secondPrime
      self.firstExponent = firstExponent
      self.secondExponent = secondExponent
      self.coefficient = coefficient
    }
  }

  /// Decodes a DER `PrivateKeyInfo`; throws if it is not a consistent RSA key of at least 2048 bits. Source: RFC 5208 §5.
  package init(pkcs8 encoded: Span<UInt8>) throws(CryptographyFailure) {
    let decoded = unsafe encoded.withUnsafeBufferPointer { encoded in
      var cursor = encoded.baseAddress
      return unsafe d2i_AutoPrivateKey(nil, &cursor, encoded.count)
    }
    try self.init(checking: unsafe Handle(decoded, freedBy: EVP_PKEY_free))
  }

  /// Imports a key from its parameters; throws if they are inconsistent, or the modulus has fewer than 2048 bits.
  package init(_ components: borrowing Components) throws(CryptographyFailure) {
    let builder = try unsafe Handle(OSSL_PARAM_BLD_new(), freedBy: OSSL_PARAM_BLD_free)
    let modulus = try bigNumber(components.modulus.span)
    let publicExponent = try bigNumber(components.publicExponent.span)
    let privateExponent = try bigNumber(components.privateExponent.bytes)
    let firstPrime = try bigNumber(components.firstPrime.bytes)
    let secondPrime = try bigNumber(components.secondPrime.bytes)
    let firstExponent = try bigNumber(components.firstExponent.bytes)
    let secondExponent = try bigNumber(components.secondExponent.bytes)
    let coefficient = try bigNumber(components.coefficient.bytes)
    try push(modulus, "n", on: builder)
    try push(publicExponent, "e", on: builder)
    try push(privateExponent, "d", on: builder)
    try push(firstPrime, "rsa-factor1", on: builder)
    try push(secondPrime, "rsa-factor2", on: builder)
    try push(firstExponent, "rsa-exponent1", on: builder)
    try push(secondExponent, "rsa-exponent2", on: builder)
    try push(coefficient, "rsa-coefficient1", on: builder)
    try self.init(checking: makeKey(algorithm: "RSA", from: builder))
  }

  private init(checking key: consuming Handle) throws(CryptographyFailure) {
    guard unsafe EVP_PKEY_is_a(key.pointer, "RSA") == 1, unsafe EVP_PKEY_get_bits(key.pointer) >= 2048 else {
      throw failure()
    }
    let context = try unsafe Handle(EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil), freedBy: EVP_PKEY_CTX_free)
    try check(unsafe EVP_PKEY_pairwise_check(context.pointer))
    self.key = key
  }

  /// Decrypts an OAEP message; `hash` is both its hash and the hash of its mask. `label` may be empty.
  ///
  /// Source: RFC 8017 §7.1.2; RFC 7518 §4.3.
  /// - Throws: the same opaque `CryptographyFailure` for every error.
  package borrowing func decryptOAEP(
    _ message: Span<UInt8>, hash: OAEPHash, label: Span<UInt8>
  ) throws(CryptographyFailure) -> SecretBytes {
    let context = try unsafe oaepContext(
      for: key, hash: hash, label: label, initialize: EVP_PKEY_decrypt_init)
    var output = SecretBytes(zeros: Int(unsafe EVP_PKEY_get_size(key.pointer)))
    var count = output.count
    var bytes = output.mutableBytes
    let result = unsafe message.withUnsafeBufferPointer { message in
      unsafe bytes.withUnsafeMutableBufferPointer { output in
        unsafe EVP_PKEY_decrypt(context.pointer, output.baseAddress, &count, message.baseAddress, message.count)
      }
    }
    try check(result)
    return SecretBytes(copying: output.bytes.extracting(first: count))
  }

  /// Encrypts `message` to this key's public half, for ``decryptOAEP(_:hash:label:)``.
  package borrowing func encryptOAEP(
    _ message: Span<UInt8>, hash: OAEPHash, label: Span<UInt8>
  ) throws(CryptographyFailure) -> [UInt8] {
    let context = try unsafe oaepContext(
      for: key, hash: hash, label: label, initialize: EVP_PKEY_encrypt_init)
    var output = [UInt8](repeating: 0, count: Int(unsafe EVP_PKEY_get_size(key.pointer)))
    var count = output.count
    let result = unsafe message.withUnsafeBufferPointer { message in
      unsafe EVP_PKEY_encrypt(context.pointer, &output, &count, message.baseAddress, message.count)
    }
    try check(result)
    return output
  }
}

/// The hash of an OAEP encryption.
package enum OAEPHash: Sendable {
  /// The hash: SHA-1, SHA-256, SHA-384 or SHA-512.
  case sha1, sha256, sha384, sha512

  var digest: OpaquePointer? {
    switch self {
    case .sha1: unsafe EVP_sha1()
    case .sha256: unsafe EVP_sha256()
    case .sha384: unsafe EVP_sha384()
    case .sha512: unsafe EVP_sha512()
    }
  }
}

private func push(
  _ number: borrowing Handle, _ name: StaticString, on builder: borrowing Handle
) throws(CryptographyFailure) {
  try check(unsafe OSSL_PARAM_BLD_push_BN(builder.pointer, cString(name), number.pointer))
}

private func oaepContext(
  for key: borrowing Handle, hash: OAEPHash, label: Span<UInt8>, initialize: (OpaquePointer?) -> CInt
) throws(CryptographyFailure) -> Handle {
  let context = try unsafe Handle(EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil), freedBy: EVP_PKEY_CTX_free)
  try check(unsafe initialize(context.pointer))
  try check(unsafe EVP_PKEY_CTX_set_rsa_padding(context.pointer, RSA_PKCS1_OAEP_PADDING))
  try check(unsafe EVP_PKEY_CTX_set_rsa_oaep_md(context.pointer, hash.digest))
  try check(unsafe EVP_PKEY_CTX_set_rsa_mgf1_md(context.pointer, hash.digest))
  guard !label.isEmpty else { return context }
  guard let count = CInt(exactly: label.count) else { throw CryptographyFailure() }
  let owned = unsafe label.withUnsafeBufferPointer { label in
    unsafe CRYPTO_memdup(label.baseAddress, label.count, nil, 0)
  }
  guard let owned = unsafe owned else { throw failure() }
  guard unsafe EVP_PKEY_CTX_set0_rsa_oaep_label(context.pointer, owned, count) == 1 else {
    unsafe CRYPTO_free(owned, nil, 0)
    throw failure()
  }
  return context
}
