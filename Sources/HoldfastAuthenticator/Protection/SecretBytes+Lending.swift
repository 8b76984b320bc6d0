import HoldfastOpenSSL

extension SecretBytes {
  /// Lends the bytes to `body`: also those of a class's own, whose span cannot be taken.
  borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(bytes)
  }
}
