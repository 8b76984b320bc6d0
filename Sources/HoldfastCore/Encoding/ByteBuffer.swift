/// Up to `capacity` bytes, stored inline and wiped when they go out of scope.
public struct ByteBuffer<let capacity: Int>: ~Copyable, ByteSink, Sendable {
  @usableFromInline var storage = PinnedBytes<capacity>()
  /// How many bytes are held.
  public private(set) var count = 0

  /// No bytes.
  public init() {}

  /// `zeroCount` zero bytes, at most `capacity`, to be written in place.
  init(zeros zeroCount: Int) {
    precondition(zeroCount <= capacity)
    count = zeroCount
    storage.setZero(count: zeroCount)
  }

  /// The bytes held; valid until the buffer changes.
  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    @_transparent
    get { storage.bytes(count: count) }
  }

  /// The bytes held, to be changed in place.
  public var mutableBytes: MutableSpan<UInt8> {
    @_lifetime(&self)
    mutating get { storage.mutableBytes(count: count) }
  }

  /// Takes `bytes` at the end; `tooLong`, and nothing changes, when they do not fit.
  public mutating func append(_ bytes: Span<UInt8>) throws(EncodingFault) {
    try unsafe bytes.copy(to: storage.start, from: &count, capacity: capacity)
  }

  /// Takes one byte at the end; `tooLong` when there is no room.
  public mutating func append(_ byte: UInt8) throws(EncodingFault) {
    guard count < capacity else { throw .tooLong }
    unsafe (storage.start + count).initialize(to: byte)
    count += 1
  }

  /// Takes `zeroCount` zero bytes at the end, as room to be written in place.
  public mutating func appendZeros(_ zeroCount: Int) throws(EncodingFault) {
    guard zeroCount <= capacity - count else { throw .tooLong }
    unsafe (storage.start + count).initialize(repeating: 0, count: zeroCount)
    count += zeroCount
  }

  /// Keeps the first `newCount` bytes, at most ``count``, and wipes the others.
  public mutating func truncate(to newCount: Int) {
    precondition((0...count).contains(newCount))
    unsafe wipe(storage.start + newCount, byteCount: count - newCount)
    count = newCount
  }

  /// Wipes every byte.
  public mutating func removeAll() {
    truncate(to: 0)
  }
}
