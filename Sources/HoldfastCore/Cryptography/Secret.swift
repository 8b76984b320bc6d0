import CBarrier

/// `count` secret bytes, stored inline, wiped when they go out of scope.
///
/// There is no `==`, no `description` and no way to copy by accident. A move may leave a copy in a dead stack frame; what
/// lives long (keys, remembered tokens) is therefore kept in one place and borrowed.
public struct Secret<let count: Int>: ~Copyable, Sendable {
  @usableFromInline var storage = PinnedBytes<count>()

  /// All bytes zero, to be filled in place.
  public init() {
    storage.setZero(count: count)
  }

  /// Copies `bytes`; nil unless there are exactly `count` of them.
  public init?(copying bytes: Span<UInt8>) {
    self.init()
    do throws(EncodingFault) { try set(bytes) } catch { return nil }
  }

  /// Takes these bytes in the place of those before; `unexpected` unless there are exactly `count` of them.
  mutating func set(_ bytes: Span<UInt8>) throws(EncodingFault) {
    guard bytes.count == count else { throw .unexpected }
    unsafe bytes.copy(to: storage.start)
  }

  /// Lends the bytes to `body`.
  public borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(storage.bytes(count: count))
  }

  /// Lends the bytes to `body` for writing.
  public mutating func withMutableBytes<Result: ~Copyable, Failure: Error>(
    _ body: (inout MutableSpan<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var span = storage.mutableBytes(count: count)
    return try body(&span)
  }

  /// Becomes a second copy, made on purpose.
  public mutating func set(_ other: borrowing Secret) {
    unsafe other.storage.bytes(count: count).copy(to: storage.start)
  }

  /// A second copy.
  public borrowing func copy() -> Secret {
    var other = Secret()
    other.set(self)
    return other
  }
}

/// Overwrites `bytes` with zeros; the write is never left out.
public func wipe(_ bytes: inout MutableSpan<UInt8>) {
  unsafe bytes.withUnsafeMutableBufferPointer { (buffer) in
    guard let start = buffer.baseAddress else { return }
    unsafe wipe(start, byteCount: buffer.count)
  }
}

/// Overwrites memory that is about to be given up.
@usableFromInline func wipe(_ start: UnsafeMutablePointer<UInt8>, byteCount: Int) {
  unsafe holdfast_wipe(start, byteCount)
}

/// `value`, of which the compiler knows nothing.
public func opaque(_ value: UInt8) -> UInt8 {
  holdfast_opaque(value)
}
