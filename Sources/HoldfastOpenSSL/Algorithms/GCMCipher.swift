import COpenSSL
import HoldfastCore

/// AES-GCM with 12-byte nonces and 16-byte tags. The context is kept between calls.
///
/// Source: SP 800-38D §7.
struct GCMCipher: ~Copyable {
  private let context: Handle
  private let keyByteCount: Int

  /// Creates a cipher for keys of `keyByteCount` bytes: 16, 24 or 32.
  init(keyByteCount: Int) throws(CryptographyFailure) {
    let name: String
    switch keyByteCount {
    case 16: name = "AES-128-GCM"
    case 24: name = "AES-192-GCM"
    case 32: name = "AES-256-GCM"
    default: throw CryptographyFailure()
    }
    let cipher = try unsafe Handle(EVP_CIPHER_fetch(nil, name, nil), freedBy: EVP_CIPHER_free)
    let context = try unsafe Handle(EVP_CIPHER_CTX_new(), freedBy: EVP_CIPHER_CTX_free)
    try check(unsafe EVP_CipherInit_ex2(context.pointer, cipher.pointer, nil, nil, 1, nil))
    self.context = context
    self.keyByteCount = keyByteCount
  }

  /// Encrypts `message` in place and writes its tag.
  mutating func seal(
    key: Span<UInt8>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: inout AuthenticationTag
  ) throws(CryptographyFailure) {
    try begin(encrypting: true, key: key, nonce: nonce)
    try update(authenticating: data)
    try update(&message)
    try end()
    try check(control(EVP_CTRL_AEAD_GET_TAG, &tag))
  }

  /// Decrypts `message` in place; throws and wipes `message` if `tag` is wrong.
  ///
  /// Timing: libcrypto compares the tag in constant time.
  mutating func open(
    key: Span<UInt8>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: AuthenticationTag
  ) throws(CryptographyFailure) {
    guard try opens(key: key, nonce: nonce, authenticating: data, message: &message, tag: tag) else {
      throw CryptographyFailure()
    }
  }

  /// Decrypts `message` in place; returns false and wipes `message` if `tag` is wrong. In contrast to ``open``, this tells a wrong
  /// tag from a failure of libcrypto.
  mutating func opens(
    key: Span<UInt8>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: AuthenticationTag
  ) throws(CryptographyFailure) -> Bool {
    try begin(encrypting: false, key: key, nonce: nonce)
    var tag = tag
    try check(control(EVP_CTRL_AEAD_SET_TAG, &tag))
    try update(authenticating: data)
    try update(&message)
    do throws(CryptographyFailure) {
      try end()
      return true
    } catch {
      wipe(&message)
      return false
    }
  }

  private func begin(encrypting: Bool, key: Span<UInt8>, nonce: Span<UInt8>) throws(CryptographyFailure) {
    guard key.count == keyByteCount, nonce.count == 12 else { throw CryptographyFailure() }
    let result = unsafe key.withUnsafeBufferPointer { key in
      unsafe nonce.withUnsafeBufferPointer { nonce in
        unsafe EVP_CipherInit_ex2(context.pointer, nil, key.baseAddress, nonce.baseAddress, encrypting ? 1 : 0, nil)
      }
    }
    try check(result)
  }

  private func update(authenticating data: Span<UInt8>) throws(CryptographyFailure) {
    guard !data.isEmpty else { return }
    guard let count = CInt(exactly: data.count) else { throw CryptographyFailure() }
    var written: CInt = 0
    let result = unsafe data.withUnsafeBufferPointer {
      unsafe EVP_CipherUpdate(context.pointer, nil, &written, $0.baseAddress, count)
    }
    try check(result)
  }

  private func update(_ message: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    guard !message.isEmpty else { return }
    guard let count = CInt(exactly: message.count) else { throw CryptographyFailure() }
    var written: CInt = 0
    let result = unsafe message.withUnsafeMutableBufferPointer {
      unsafe EVP_CipherUpdate(context.pointer, $0.baseAddress, &written, $0.baseAddress, count)
    }
    try check(result)
  }

  private func end() throws(CryptographyFailure) {
    var nothing = AuthenticationTag()
    var bytes = nothing.mutableBytes
    var written: CInt = 0
    let result = unsafe bytes.withUnsafeMutableBufferPointer {
      unsafe EVP_CipherFinal_ex(context.pointer, $0.baseAddress, &written)
    }
    try check(result)
  }

  private func control(_ command: CInt, _ tag: inout AuthenticationTag) -> CInt {
    var bytes = tag.mutableBytes
    return unsafe bytes.withUnsafeMutableBufferPointer {
      unsafe EVP_CIPHER_CTX_ctrl(context.pointer, command, 16, $0.baseAddress)
    }
  }
}

/// AES-GCM of any key size in one call, with 12-byte nonces and 16-byte tags.
///
/// Source: SP 800-38D §7. ``OpenSSLCryptography`` keeps a context and is faster.
package enum AESGCM {
  /// Encrypts `message` in place under a key of 16, 24 or 32 bytes and writes its tag.
  package static func seal(
    key: Span<UInt8>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: inout AuthenticationTag
  ) throws(CryptographyFailure) {
    var cipher = try GCMCipher(keyByteCount: key.count)
    try cipher.seal(key: key, nonce: nonce, authenticating: data, message: &message, tag: &tag)
  }

  /// Decrypts `message` in place under a key of 16, 24 or 32 bytes; throws and wipes `message` if `tag` is wrong.
  ///
  /// Timing: libcrypto compares the tag in constant time.
  package static func open(
    key: Span<UInt8>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: AuthenticationTag
  ) throws(CryptographyFailure) {
    var cipher = try GCMCipher(keyByteCount: key.count)
    try cipher.open(key: key, nonce: nonce, authenticating: data, message: &message, tag: tag)
  }

  /// Decrypts `message` in place under a key of 16, 24 or 32 bytes; returns false and wipes `message` if `tag` is wrong.
  ///
  /// Timing: libcrypto compares the tag in constant time.
  ///
  /// - Throws: `CryptographyFailure` only if libcrypto fails before it compares the tag.
  package static func opens(
    key: Span<UInt8>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: AuthenticationTag
  ) throws(CryptographyFailure) -> Bool {
    var cipher = try GCMCipher(keyByteCount: key.count)
    return try cipher.opens(key: key, nonce: nonce, authenticating: data, message: &message, tag: tag)
  }
}
