import HoldfastCore
import HoldfastOpenSSL

/// A code of 128 random bits that is shown once and stored nowhere. It restores a user's records from before a change
/// of PIN.
package struct UndoCode: ~Copyable, Sendable {
  package let bytes: Secret<16>

  /// The length in characters: 26 for 128 bits and two zero bits, and two check characters.
  static let characterCount = 28

  /// Generates a code.
  package init<Random: RandomSource & ~Copyable>(random: inout Random) throws(AuthenticatorFault) {
    do throws(RandomFailure) { bytes = try random.secret() } catch { throw .failed }
  }

  /// Reads seven groups of four characters, as ``withText(_:)`` writes them. Lower case, spaces and missing hyphens are
  /// accepted, as are O for 0 and I and L for 1.
  ///
  /// - Throws: `malformedUndoCode` if the check characters do not match, or if characters are missing or not in the
  ///   alphabet.
  package init(_ text: Span<UInt8>) throws(AuthenticatorFault) {
    var values = Secret<28>()
    let count = values.withMutableBytes { values in
      var count = 0
      var foreign: UInt8 = 0
      for index in text.indices where ![0x2d, 0x20, 0x0a, 0x0d, 0x09].contains(text[index]) {
        let value = CrockfordBase32.value(text[index])
        foreign |= value & 0x80
        if count < Self.characterCount { values[count] = value & 0x1f }
        count += 1
      }
      return revealed(foreign) == 0 ? count : 0
    }
    guard count == Self.characterCount else { throw .malformedUndoCode }
    var bytes = Secret<16>()
    values.withBytes { values in
      bytes.withMutableBytes { bytes in
        for bit in 0..<128 { bytes[bit / 8] |= (values[bit / 5] >> UInt8(4 - bit % 5) & 1) << UInt8(7 - bit % 8) }
      }
    }
    let expected = try Self.characters(of: bytes)
    let isRight = values.withBytes { given in
      expected.withBytes { expected in constantTimeEqual(given, expected) }
    }
    guard isRight else { throw .malformedUndoCode }
    self.bytes = bytes
  }

  /// Lends the code to `body` as text: seven groups of four characters, separated by hyphens.
  package func withText<Result>(_ body: (Span<UInt8>) -> Result) throws(AuthenticatorFault) -> Result {
    let values = try Self.characters(of: bytes)
    var text = SecretBytes(zeros: Self.characterCount + Self.characterCount / 4 - 1)
    var output = text.mutableBytes
    values.withBytes { values in
      for index in output.indices {
        let isHyphen = index % 5 == 4
        output[index] = isHyphen ? 0x2d : CrockfordBase32.character(values[index - index / 5])
      }
    }
    return body(text.bytes)
  }

  /// Returns the five bits of each character; the check characters are the last two.
  private static func characters(of bytes: borrowing Secret<16>) throws(AuthenticatorFault) -> Secret<28> {
    var check = Digest()
    var hash = SHA256Stream()
    hash.append(domain: "holdfast/1 undo code")
    do throws(CryptographyFailure) {
      bytes.withBytes { hash.append($0) }
      check = try hash.finish()
    } catch { throw .failed }
    var values = Secret<28>()
    bytes.withBytes { bytes in
      values.withMutableBytes { values in
        for bit in 0..<128 { values[bit / 5] |= (bytes[bit / 8] >> UInt8(7 - bit % 8) & 1) << UInt8(4 - bit % 5) }
        values[26] = check[0] & 0x1f
        values[27] = check[1] & 0x1f
      }
    }
    return values
  }
}

/// A blinded secret encrypted under an undo code, which only the user has.
///
/// The copy consists of a nonce of 12 bytes, the ciphertext of the array `[protection, secret]`, and a tag of 16 bytes.
package enum UndoCopy {
  /// Encrypts `secret`, bound to the record that it belongs to.
  static func make<Random: RandomSource & ~Copyable>(
    of secret: BlindedSecret, for record: Record, under code: borrowing UndoCode, random: inout Random,
    using cryptography: inout OpenSSLCryptography
  ) throws(AuthenticatorFault) -> [UInt8] {
    var message = secret.contents
    let nonce: FixedBytes<12>
    do throws(RandomFailure) { nonce = try random.fixedBytes() } catch { throw .failed }
    var tag = AuthenticationTag()
    do throws(CryptographyFailure) {
      let key = try code.key(using: &cryptography)
      var span = message.mutableSpan
      try cryptography.aes256GCMSeal(
        key: key, nonce: nonce.bytes, authenticating: binding(record).span, message: &span, tag: &tag)
    } catch { throw .failed }
    return [UInt8](nonce.bytes) + message + [UInt8](tag.bytes)
  }

  /// Decrypts a copy; returns nil if `code` belongs to another change or the copy to another record.
  package static func open(
    _ copy: [UInt8], for record: Record, under code: borrowing UndoCode,
    using cryptography: inout OpenSSLCryptography
  ) -> BlindedSecret? {
    guard copy.count > 28, let tag = AuthenticationTag(copy.span.extracting(last: 16)) else { return nil }
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

extension BlindedSecret {
  /// The array `[protection, secret]`, which an undo copy contains.
  package var contents: [UInt8] {
    var contents: [UInt8] = []
    contents.appendCBOR(array: 2)
    protection.encode(into: &contents)
    bytes.withBytes { contents.appendCBOR(bytes: $0) }
    return contents
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
