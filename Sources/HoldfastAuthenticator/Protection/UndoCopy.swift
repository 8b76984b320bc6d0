import HoldfastCore
import HoldfastOpenSSL

/// A blinded secret encrypted under an undo code: nothing but that code opens it, and nobody has that but the user.
///
/// 12 bytes of nonce, the ciphertext of the array `[protection, secret]`, 16 bytes of tag.
enum UndoCopy {
  /// Encrypts `secret`, bound to the record that it belongs to.
  static func make<Random: RandomSource & ~Copyable>(
    of secret: BlindedSecret, for record: Record, under code: borrowing UndoCode, random: inout Random,
    using cryptography: inout OpenSSLCryptography
  ) throws(AuthenticatorFault) -> [UInt8] {
    var message: [UInt8] = []
    message.appendCBOR(array: 2)
    secret.protection.encode(into: &message)
    secret.bytes.withBytes { message.appendCBOR(bytes: $0) }
    let nonce: FixedBytes<12>
    do throws(RandomFailure) { nonce = try random.fixedBytes() } catch { throw .failed }
    var tag = FixedBytes<16>()
    do throws(CryptographyFailure) {
      let key = try code.key(using: &cryptography)
      var span = message.mutableSpan
      try cryptography.aes256GCMSeal(
        key: key, nonce: nonce.bytes, authenticating: binding(record).span, message: &span, tag: &tag)
    } catch { throw .failed }
    return [UInt8](nonce.bytes) + message + [UInt8](tag.bytes)
  }

  /// Decrypts a copy; nil when `code` is another one's, or the copy another record's.
  static func open(
    _ copy: [UInt8], for record: Record, under code: borrowing UndoCode,
    using cryptography: inout OpenSSLCryptography
  ) -> BlindedSecret? {
    guard copy.count > 28, let tag = FixedBytes<16>(copy.span.extracting(last: 16)) else { return nil }
    var message = SecretBytes(copying: copy.span.extracting(12..<copy.count - 16))
    do throws(CryptographyFailure) {
      let key = try code.key(using: &cryptography)
      var span = message.mutableBytes
      try cryptography.aes256GCMOpen(
        key: key, nonce: copy.span.extracting(first: 12), authenticating: binding(record).span, message: &span, tag: tag
      )
    } catch { return nil }
    do throws(EncodingFault) {
      var reader = CBORReader(message.bytes)
      try reader.array(of: 2)
      let protection = try Protection(&reader)
      let bytes = SecretBytes(copying: try reader.byteString())
      try reader.finish()
      return BlindedSecret(protection: protection, bytes: bytes)
    } catch { return nil }
  }

  private static func binding(_ record: Record) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(domain: "holdfast/1 undo copy")
    bytes.appendCBOR(text: Array(record.user.utf8).span)
    bytes.appendCBOR(unsigned: UInt64(record.index))
    return bytes
  }
}

extension UndoCode {
  fileprivate borrowing func key(
    using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> Secret<32> {
    var info: [UInt8] = []
    info.append(domain: "holdfast/1 undo key")
    var key = Secret<32>()
    try bytes.withBytes { (code) throws(CryptographyFailure) in
      try key.withMutableBytes { (key: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
        try cryptography.hkdfSHA256(inputKey: code, salt: [UInt8]().span, info: info.span, into: &key)
      }
    }
    return key
  }
}
