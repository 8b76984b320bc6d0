import HoldfastCore

extension Credential {
  /// Whether the secret is printable ASCII from its first byte to its last, as none of 8 random bytes or more hardly ever is.
  ///
  /// Blinded by a PIN, such a secret gives itself away: a wrong PIN makes other bytes of it. It is a thing to warn of.
  public var isText: Bool {
    secret.withBytes { bytes in
      guard bytes.count >= 8 else { return false }
      var strange: Int32 = 0
      for index in bytes.indices {
        let byte = Int32(bytes[index])
        strange |= (byte - 0x20) | (0x7e - byte)
      }
      return opaque(UInt8(truncatingIfNeeded: strange >> 31)) == 0
    }
  }
}
