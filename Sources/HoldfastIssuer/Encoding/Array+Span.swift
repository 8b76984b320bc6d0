extension Array where Element == UInt8 {
  /// A copy of `bytes`, which are no secret.
  init(copying bytes: Span<UInt8>) {
    self.init()
    append(bytes)
  }
}
