/// Up to `capacity` bytes, stored inline and wiped when they go out of scope.
public struct ByteBuffer<let capacity: Int>: ~Copyable, ByteSink, Sendable {
  @usableFromInline var storage: InlineArray<capacity, UInt8>
  @usableFromInline let pin = Pinned()
  /// How many bytes are held.
  public private(set) var count: Int

  /// No bytes.
  public init() {
    storage = InlineArray(repeating: 0)
    count = 0
  }

  /// `zeroCount` zero bytes, at most `capacity`, to be written in place.
  init(zeros zeroCount: Int) {
    precondition(zeroCount <= capacity)
    storage = InlineArray(repeating: 0)
    count = zeroCount
  }

  @inlinable deinit {
    wipeInPlace()
  }

  @usableFromInline borrowing func wipeInPlace() {
    unsafe storage.span.withUnsafeBufferPointer { unsafe wipe($0) }
  }

  /// The bytes held; valid until the buffer changes.
  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    @_transparent
    get { storage.span.extracting(0..<count) }
  }

  /// The bytes held, to be changed in place.
  public var mutableBytes: MutableSpan<UInt8> {
    @_lifetime(&self)
    mutating get {
      let whole = storage.mutableSpan
      return whole._consumingExtracting(0..<count)
    }
  }

  /// Takes `bytes` at the end; `tooLong`, and nothing changes, when they do not fit.
  public mutating func append(_ bytes: Span<UInt8>) throws(EncodingFault) {
    guard bytes.count <= capacity - count else { throw .tooLong }
    var whole = storage.mutableSpan
    copy(bytes, over: &whole, from: count)
    count += bytes.count
  }

  /// Takes `zeroCount` zero bytes at the end, as room to be written in place.
  public mutating func appendZeros(_ zeroCount: Int) throws(EncodingFault) {
    guard zeroCount <= capacity - count else { throw .tooLong }
    for index in count..<count + zeroCount { storage[index] = 0 }
    count += zeroCount
  }

  /// Keeps the first `newCount` bytes and wipes the others.
  public mutating func truncate(to newCount: Int) {
    for index in newCount..<count { storage[index] = 0 }
    count = newCount
  }

  /// Wipes every byte.
  public mutating func removeAll() {
    var span = storage.mutableSpan
    wipe(&span)
    count = 0
  }
}

/// Writes `bytes` over those of `target` from `start` on.
@inline(never)
func copy(_ bytes: Span<UInt8>, over target: inout MutableSpan<UInt8>, from start: Int) {
  for index in bytes.indices { target[start + index] = bytes[index] }
}
