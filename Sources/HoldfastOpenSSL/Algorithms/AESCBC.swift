import COpenSSL
import HoldfastCore

/// AES-CBC with padding. It is only half of an authenticated encryption, and is never used without its MAC.
///
/// Source: SP 800-38A §6.2; RFC 5652 §6.3; RFC 7518 §5.2.2.
package enum AESCBC {
  /// Encrypts `message`, with PKCS #7 padding, under a key of 16, 24 or 32 bytes and an initialization vector of 16.
  package static func encrypt(
    key: Span<UInt8>, initializationVector: Span<UInt8>, message: Span<UInt8>
  ) throws(CryptographyFailure) -> [UInt8] {
    var output = SecretBytes(zeros: message.count + 16)
    let count = try run(encrypting: true, key, initializationVector, message, into: &output)
    return [UInt8](capacity: count) { span in
      for index in 0..<count { span.append(output.bytes[index]) }
    }
  }

  /// The padding of a message to complete blocks. The last byte is the number of bytes added.
  package enum Padding: Sendable {
    /// All padding bytes have that value. Source: RFC 5652 §6.3.
    case pkcs7
    /// The other padding bytes are arbitrary. Source: XML Encryption 1.1 §5.2.
    case xmlEncryption
  }

  /// Decrypts `message`, whose MAC the caller has already verified; throws if the padding is wrong.
  package static func decrypt(
    key: Span<UInt8>, initializationVector: Span<UInt8>, message: Span<UInt8>, padding: Padding = .pkcs7
  ) throws(CryptographyFailure) -> SecretBytes {
    var output = SecretBytes(zeros: message.count + 16)
    var count = try run(
      encrypting: false, padded: padding == .pkcs7, key, initializationVector, message, into: &output)
    if padding == .xmlEncryption {
      guard count > 0, (1...16).contains(output.bytes[count - 1]) else { throw CryptographyFailure() }
      count -= Int(output.bytes[count - 1])
    }
    return SecretBytes(copying: output.bytes.extracting(first: count))
  }

  private static func run(
    encrypting: Bool, padded: Bool = true, _ key: Span<UInt8>, _ initializationVector: Span<UInt8>,
    _ message: Span<UInt8>,
    into output: inout SecretBytes
  ) throws(CryptographyFailure) -> Int {
    guard initializationVector.count == 16, let messageCount = CInt(exactly: message.count) else {
      throw CryptographyFailure()
    }
    let cipher = unsafe try cipher(keyByteCount: key.count)
    let context = try unsafe Handle(EVP_CIPHER_CTX_new(), freedBy: EVP_CIPHER_CTX_free)
    let direction: CInt = encrypting ? 1 : 0
    let begun = unsafe key.withUnsafeBufferPointer { key in
      unsafe initializationVector.withUnsafeBufferPointer { vector in
        unsafe EVP_CipherInit_ex2(context.pointer, cipher, key.baseAddress, vector.baseAddress, direction, nil)
      }
    }
    try check(begun)
    unsafe EVP_CIPHER_CTX_set_padding(context.pointer, padded ? 1 : 0)
    var written: CInt = 0
    var last: CInt = 0
    var bytes = output.mutableBytes
    let ended = unsafe message.withUnsafeBufferPointer { message in
      unsafe bytes.withUnsafeMutableBufferPointer { output -> CInt in
        if messageCount > 0 {
          let updated = unsafe EVP_CipherUpdate(
            context.pointer, output.baseAddress, &written, message.baseAddress, messageCount)
          guard updated == 1 else { return 0 }
        }
        return unsafe EVP_CipherFinal_ex(context.pointer, output.baseAddress! + Int(written), &last)
      }
    }
    try check(ended)
    return Int(written + last)
  }

  private static func cipher(keyByteCount: Int) throws(CryptographyFailure) -> OpaquePointer? {
    switch keyByteCount {
    case 16: unsafe EVP_aes_128_cbc()
    case 24: unsafe EVP_aes_192_cbc()
    case 32: unsafe EVP_aes_256_cbc()
    default: throw CryptographyFailure()
    }
  }
}
