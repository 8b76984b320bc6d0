import HoldfastOpenSSL

/// A key in place of a PIN, handed over by another authenticator: a fingerprint reader, a smart card, a key ring.
public struct ExternalKey: ~Copyable, Sendable {
  /// The fewest and the most bytes of a key: below, it could be guessed.
  public static let byteCounts = 16...1024

  let bytes: SecretBytes

  /// Copies `bytes`; nil unless there are 16 to 1,024.
  public init?(_ bytes: Span<UInt8>) {
    guard Self.byteCounts.contains(bytes.count) else { return nil }
    self.bytes = SecretBytes(copying: bytes)
  }
}
