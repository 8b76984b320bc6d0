import COpenSSL

/// An RSA key of libcrypto, of any size, for vectors of algorithms that Holdfast itself does not use.
@safe
struct LibcryptoRSAKey: ~Copyable {
  private let pointer: OpaquePointer

  /// The padding of a signature.
  enum Padding {
    /// RSASSA-PKCS1-v1_5. Source: RFC 8017 §8.2.
    case pkcs1
    /// RSASSA-PSS, whose salt is as long as the hash, and whose mask uses the same hash. Source: RFC 8017 §8.1.
    case pss
  }

  /// Decodes a DER `PrivateKeyInfo`, whose key may have more than two primes; nil for anything else.
  init?(pkcs8 encoded: [UInt8]) {
    let decoded = unsafe encoded.withUnsafeBufferPointer { encoded in
      var cursor = encoded.baseAddress
      return unsafe d2i_AutoPrivateKey(nil, &cursor, encoded.count)
    }
    ERR_clear_error()
    guard let decoded = unsafe decoded else { return nil }
    unsafe pointer = decoded
  }

  /// Makes a public key from big-endian numbers; nil if libcrypto fails.
  init?(modulus: [UInt8], exponent: [UInt8]) {
    guard let key = unsafe Self.publicKey(modulus, exponent) else {
      ERR_clear_error()
      return nil
    }
    unsafe pointer = key
  }

  private static func publicKey(_ modulus: [UInt8], _ exponent: [UInt8]) -> OpaquePointer? {
    guard let numbers = unsafe RSA_new() else { return nil }
    defer { unsafe RSA_free(numbers) }
    let n = unsafe BN_bin2bn(modulus, CInt(modulus.count), nil)
    let e = unsafe BN_bin2bn(exponent, CInt(exponent.count), nil)
    guard unsafe RSA_set0_key(numbers, n, e, nil) == 1, let key = unsafe EVP_PKEY_new() else { return nil }
    guard unsafe EVP_PKEY_set1_RSA(key, numbers) == 1 else {
      unsafe EVP_PKEY_free(key)
      return nil
    }
    return unsafe key
  }

  deinit { unsafe EVP_PKEY_free(pointer) }

  /// The number of bits of the modulus.
  var bitCount: Int { Int(unsafe EVP_PKEY_get_bits(pointer)) }

  /// Returns the decrypted OAEP message; nil if it does not decrypt. Source: RFC 8017 §7.1.2.
  func decryptOAEP(
    _ message: [UInt8], hash: borrowing LibcryptoHash, maskHash: borrowing LibcryptoHash, label: [UInt8]
  ) -> [UInt8]? {
    guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, pointer, nil) else { return nil }
    defer {
      unsafe EVP_PKEY_CTX_free(context)
      ERR_clear_error()
    }
    guard unsafe EVP_PKEY_decrypt_init(context) == 1,
      unsafe EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_OAEP_PADDING) == 1,
      unsafe EVP_PKEY_CTX_set_rsa_oaep_md(context, hash.pointer) == 1,
      unsafe EVP_PKEY_CTX_set_rsa_mgf1_md(context, maskHash.pointer) == 1
    else { return nil }
    if !label.isEmpty {
      // libcrypto owns this copy if it takes it.
      let copy = unsafe CRYPTO_memdup(label, label.count, nil, 0)
      guard unsafe EVP_PKEY_CTX_set0_rsa_oaep_label(context, copy, CInt(label.count)) == 1 else {
        unsafe CRYPTO_free(copy, nil, 0)
        return nil
      }
    }
    var output = [UInt8](repeating: 0, count: Int(unsafe EVP_PKEY_get_size(pointer)))
    var count = output.count
    guard unsafe EVP_PKEY_decrypt(context, &output, &count, message, message.count) == 1 else { return nil }
    return Array(output[..<count])
  }

  /// Returns whether a signature, as long as the modulus, over a message was made with this key.
  func verifies(_ signature: [UInt8], of message: [UInt8], hash: borrowing LibcryptoHash, padding: Padding) -> Bool {
    guard signature.count == Int(unsafe EVP_PKEY_get_size(pointer)), let digest = hash.digest(message),
      let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, pointer, nil)
    else { return false }
    defer {
      unsafe EVP_PKEY_CTX_free(context)
      ERR_clear_error()
    }
    let mode = padding == .pss ? RSA_PKCS1_PSS_PADDING : RSA_PKCS1_PADDING
    guard unsafe EVP_PKEY_verify_init(context) == 1, unsafe EVP_PKEY_CTX_set_rsa_padding(context, mode) == 1,
      unsafe EVP_PKEY_CTX_set_signature_md(context, hash.pointer) == 1,
      unsafe padding == .pkcs1 || EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1
    else { return false }
    return unsafe EVP_PKEY_verify(context, signature, signature.count, digest, digest.count) == 1
  }
}
