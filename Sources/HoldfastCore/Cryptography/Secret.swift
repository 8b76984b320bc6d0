import CBarrier

/// `count` secret bytes, stored inline, wiped when they go out of scope.
///
/// There is no `==`, no `description` and no way to copy by accident. A move may leave a copy in a dead stack frame; what
/// lives long (keys, remembered tokens) is therefore kept in one place and borrowed.
public struct Secret<let count: Int>: ~Copyable, Sendable {
  @usableFromInline var storage: InlineArray<count, UInt8>
  @usableFromInline let pin = Pinned()

  /// All bytes zero, to be filled in place.
  public init() {
    storage = InlineArray(repeating: 0)
  }

  /// Copies `bytes`; nil unless there are exactly `count` of them.
  public init?(copying bytes: Span<UInt8>) {
    guard bytes.count == count else { return nil }
    storage = InlineArray { bytes[$0] }
  }

  @inlinable deinit {
    wipeInPlace()
  }

  @usableFromInline borrowing func wipeInPlace() {
    unsafe storage.span.withUnsafeBufferPointer { unsafe wipe($0) }
  }

  /// Lends the bytes to `body`.
  public borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(storage.span)
  }

  /// Lends the bytes to `body` for writing.
  public mutating func withMutableBytes<Result: ~Copyable, Failure: Error>(
    _ body: (inout MutableSpan<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var span = storage.mutableSpan
    return try body(&span)
  }

  /// A second copy, made on purpose.
  public borrowing func copy() -> Secret {
    var other = Secret()
    other.storage = storage
    return other
  }
}

/// Overwrites `bytes` with zeros; the write is never left out.
public func wipe(_ bytes: inout MutableSpan<UInt8>) {
  unsafe bytes.withUnsafeMutableBufferPointer { unsafe wipe(UnsafeBufferPointer($0)) }
}

/// Overwrites memory that is about to be given up.
func wipe(_ bytes: UnsafeBufferPointer<UInt8>) {
  guard let start = bytes.baseAddress else { return }
  unsafe holdfast_wipe(UnsafeMutablePointer(mutating: start), bytes.count)
}

/// `value`, of which the compiler knows nothing.
public func opaque(_ value: UInt8) -> UInt8 {
  holdfast_opaque(value)
}
