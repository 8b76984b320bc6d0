extension [UInt8] {
  /// An array with the bytes of a span, which the standard library cannot make yet.
  init(copying span: Span<UInt8>) {
    unsafe self.init(unsafeUninitializedCapacity: span.count) { buffer, initializedCount in
      unsafe span.withUnsafeBufferPointer { source in
        _ = unsafe buffer.initialize(fromContentsOf: source)
      }
      initializedCount = span.count
    }
  }
}
