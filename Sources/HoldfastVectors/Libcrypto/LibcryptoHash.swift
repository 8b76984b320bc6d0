import COpenSSL

/// A hash function of libcrypto, for vectors of algorithms that Holdfast itself does not use.
@safe
struct LibcryptoHash: ~Copyable {
  let pointer: OpaquePointer
  /// The name with which the hash was fetched.
  let name: String
  private let outputByteCount: Int

  /// Fetches the hash with a name such as `SHA-256`, `SHA-512/224`, `SHA3-256` or `SHAKE128`; nil if there is none.
  init?(_ name: String) {
    guard let pointer = unsafe EVP_MD_fetch(nil, name, nil) else {
      ERR_clear_error()
      return nil
    }
    // A SHAKE has twice as many bytes as its security strength needs. Source: RFC 8692 §3.
    let isExtendable = unsafe EVP_MD_get_flags(pointer) & UInt(EVP_MD_FLAG_XOF) != 0
    let byteCount = Int(unsafe EVP_MD_get_size(pointer))
    unsafe self.pointer = pointer
    self.name = name
    outputByteCount = isExtendable ? 2 * byteCount : byteCount
  }

  deinit { unsafe EVP_MD_free(pointer) }

  /// Returns the digest of `message`; nil if libcrypto fails.
  func digest(_ message: [UInt8]) -> [UInt8]? {
    guard let context = unsafe EVP_MD_CTX_new() else { return nil }
    defer { unsafe EVP_MD_CTX_free(context) }
    var output = [UInt8](repeating: 0, count: outputByteCount)
    guard unsafe EVP_DigestInit_ex2(context, pointer, nil) == 1,
      unsafe EVP_DigestUpdate(context, message, message.count) == 1
    else { return nil }
    let isExtendable = unsafe EVP_MD_get_flags(pointer) & UInt(EVP_MD_FLAG_XOF) != 0
    let ended =
      isExtendable
      ? unsafe EVP_DigestFinalXOF(context, &output, output.count) : unsafe EVP_DigestFinal_ex(context, &output, nil)
    return ended == 1 ? output : nil
  }
}

/// AES key wrap with padding, of libcrypto. Source: RFC 5649 §4.
enum PaddedKeyWrap {
  /// Returns the wrapped key; nil if it is empty, or the key is not one of AES.
  static func wrap(_ plain: [UInt8], key: [UInt8]) -> [UInt8]? {
    plain.isEmpty ? nil : run(encrypting: true, key, plain)
  }

  /// Returns the unwrapped key; nil if the integrity value, the stated length or the padding is wrong.
  static func unwrap(_ wrapped: [UInt8], key: [UInt8]) -> [UInt8]? {
    wrapped.count >= 16 && wrapped.count.isMultiple(of: 8) ? run(encrypting: false, key, wrapped) : nil
  }

  private static func run(encrypting: Bool, _ key: [UInt8], _ input: [UInt8]) -> [UInt8]? {
    guard [16, 24, 32].contains(key.count), let inputByteCount = CInt(exactly: input.count),
      let cipher = unsafe EVP_CIPHER_fetch(nil, "AES-\(8 * key.count)-WRAP-PAD", nil)
    else { return nil }
    defer { unsafe EVP_CIPHER_free(cipher) }
    guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
    defer {
      unsafe EVP_CIPHER_CTX_free(context)
      ERR_clear_error()
    }
    unsafe EVP_CIPHER_CTX_set_flags(context, CInt(EVP_CIPHER_CTX_FLAG_WRAP_ALLOW))
    var output = [UInt8](repeating: 0, count: input.count + 16)
    var written: CInt = 0
    guard unsafe EVP_CipherInit_ex2(context, cipher, key, nil, encrypting ? 1 : 0, nil) == 1,
      unsafe EVP_CipherUpdate(context, &output, &written, input, inputByteCount) == 1, written > 0
    else { return nil }
    return Array(output[..<Int(written)])
  }
}
