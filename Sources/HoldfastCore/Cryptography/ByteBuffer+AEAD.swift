/// AES-256-GCM over a buffer, with the 16-byte tag behind the ciphertext as every message and token has it.
///
/// Source: RFC 5116 §5.1.
extension ByteBuffer {
  /// Encrypts what is held and takes the tag at the end. `nonce` is 12 bytes.
  package mutating func seal<Crypto: Cryptography & ~Copyable>(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    var tag = FixedBytes<16>()
    var message = mutableBytes
    try cryptography.aes256GCMSeal(key: key, nonce: nonce, authenticating: data, message: &message, tag: &tag)
    do throws(EncodingFault) { try append(tag.bytes) } catch { throw CryptographyFailure() }
  }

  /// Decrypts what is held, whose last 16 bytes are the tag, and drops the tag. Holds nothing when it throws.
  package mutating func open<Crypto: Cryptography & ~Copyable>(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    guard count >= 16, let tag = FixedBytes<16>(bytes.extracting(last: 16)) else { throw CryptographyFailure() }
    truncate(to: count - 16)
    do throws(CryptographyFailure) {
      var message = mutableBytes
      try cryptography.aes256GCMOpen(key: key, nonce: nonce, authenticating: data, message: &message, tag: tag)
    } catch {
      removeAll()
      throw error
    }
  }
}
