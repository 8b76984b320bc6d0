import HoldfastCore

/// Whether `text` shows as what it is: no control characters, and none that end a line, are unseen or turn its direction.
///
/// A joiner (U+200D) is allowed, because names in several scripts and emoji are written with it.
func isPlainText(_ text: String) -> Bool {
  text.unicodeScalars.allSatisfy { scalar in
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: false
    case .format: scalar.value == 0x200d
    default: true
    }
  }
}

extension String {
  /// The text of `bytes`; `invalidName` unless they are UTF-8.
  init(checking bytes: Span<UInt8>) throws(ImportFault) {
    guard let text = String(validating: [UInt8](bytes), as: UTF8.self) else { throw .invalidName }
    self = text
  }
}

extension UInt64 {
  /// The number that `bytes` write in decimal digits, without sign or leading zeros; nil for anything else, and above 2^53 - 1.
  init?(decimal bytes: Span<UInt8>) {
    guard (1...16).contains(bytes.count), bytes.count == 1 || bytes[0] != 0x30 else { return nil }
    var value: UInt64 = 0
    for index in bytes.indices {
      guard (0x30...0x39).contains(bytes[index]) else { return nil }
      value = value * 10 + UInt64(bytes[index] - 0x30)
    }
    guard value <= Credential.maximumCounter else { return nil }
    self = value
  }
}
