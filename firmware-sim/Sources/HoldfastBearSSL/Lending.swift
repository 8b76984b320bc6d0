import HoldfastCore

extension Span where Element == UInt8 {
  /// Lends the bytes, and how many there are, to a C function.
  func lend<Result>(_ body: (UnsafePointer<UInt8>?, Int) -> Result) -> Result {
    unsafe withUnsafeBufferPointer { unsafe body($0.baseAddress, $0.count) }
  }
}

extension MutableSpan where Element == UInt8 {
  /// Lends the bytes, and how many there are, to a C function that writes them.
  mutating func lend<Result>(_ body: (UnsafeMutablePointer<UInt8>?, Int) -> Result) -> Result {
    unsafe withUnsafeMutableBufferPointer { unsafe body($0.baseAddress, $0.count) }
  }
}

extension Secret {
  /// Lends the bytes to a C function.
  borrowing func lend<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
    withBytes { bytes in unsafe bytes.lend { start, _ in unsafe body(start!) } }
  }

  /// Lends the bytes to a C function that writes them.
  mutating func lendMutable<Result>(_ body: (UnsafeMutablePointer<UInt8>) -> Result) -> Result {
    withMutableBytes { bytes in unsafe bytes.lend { start, _ in unsafe body(start!) } }
  }
}

/// Overwrites the context of a C function, which holds no references, with zeros.
func wipeContext<Context>(_ context: inout Context) {
  unsafe withUnsafeMutableBytes(of: &context) { raw in
    var bytes = unsafe raw.bindMemory(to: UInt8.self).mutableSpan
    wipe(&bytes)
  }
}
