extension ByteSink where Self: ~Copyable {
  /// Writes `bytes` as hexadecimal digits, lower case. For what is public: their values show in the time taken.
  public mutating func appendHexadecimal(_ bytes: Span<UInt8>) throws(Failure) {
    for index in bytes.indices {
      try append(hexadecimalDigit(bytes[index] >> 4))
      try append(hexadecimalDigit(bytes[index] & 15))
    }
  }
}

private func hexadecimalDigit(_ nibble: UInt8) -> UInt8 {
  nibble < 10 ? 0x30 + nibble : 0x57 + nibble
}
