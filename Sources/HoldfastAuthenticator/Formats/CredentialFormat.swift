/// How a file holds credentials.
public enum CredentialFormat: String, Sendable, CaseIterable {
  /// `otpauth://` URIs, one a line.
  case otpauth
  /// `otpauth-migration://` URIs, one a line: every part of one export.
  case migration
  /// A Portable Symmetric Key Container. Source: RFC 6030.
  case pskc
  /// One secret in base32. Source: RFC 4648 §6.
  case base32
  /// One secret in hexadecimal digits.
  case hex
  /// One secret, byte by byte.
  case raw

  /// Tells the format by how `bytes` begin; nil for bare secrets, which must be named because they all look alike.
  public static func detect(_ bytes: Span<UInt8>) -> CredentialFormat? {
    var start = bytes.starts(with: "\u{FEFF}") ? 3 : 0
    while start < bytes.count, isWhitespace(bytes[start]) { start += 1 }
    let rest = bytes.extracting(start..<bytes.count)
    if rest.starts(with: "otpauth://") { return .otpauth }
    if rest.starts(with: "otpauth-migration://") { return .migration }
    return rest.starts(with: "<") ? .pskc : nil
  }
}

/// Whether `byte` is a space, a tab or the end of a line.
func isWhitespace(_ byte: UInt8) -> Bool {
  byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d
}

extension Span where Element == UInt8 {
  /// Whether the first bytes are those of `prefix`.
  func starts(with prefix: StaticString) -> Bool {
    guard count >= prefix.utf8CodeUnitCount else { return false }
    for index in 0..<prefix.utf8CodeUnitCount where unsafe self[index] != prefix.utf8Start[index] { return false }
    return true
  }
}
