import HoldfastOpenSSL

/// What a state string is encrypted under: at least 8 characters, and not digits alone, so that it is no PIN.
public struct Passphrase: ~Copyable, Sendable {
  let bytes: SecretBytes

  /// Takes UTF-8 as it is typed, 8 characters to 1,024 bytes. Throws `weakPassphrase`.
  public init(_ text: Span<UInt8>) throws(AuthenticatorFault) {
    var characterCount = 0
    var isNumber = true
    for index in text.indices {
      // What begins a character in UTF-8.
      if text[index] & 0xc0 != 0x80 { characterCount += 1 }
      if !(0x30...0x39).contains(text[index]) { isNumber = false }
    }
    guard characterCount >= 8, !isNumber, text.count <= 1024 else { throw .weakPassphrase }
    bytes = SecretBytes(copying: text)
  }

  /// Whether both are the same. Timing: tells nothing but whether they are.
  public func isSame(as other: borrowing Passphrase) -> Bool {
    constantTimeEqual(bytes.bytes, other.bytes.bytes)
  }
}
