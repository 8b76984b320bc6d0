import Builtin

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

/// Room for `capacity` bytes that stays where it is, and is wiped there when it goes out of scope.
///
/// Swift 6.3 may load an `InlineArray` whole, and then lends and wipes a copy; this it cannot load. A move copies the bytes and
/// leaves the old ones behind: what holds secrets for long is made where it stays.
@_rawLayout(likeArrayOf: UInt8, count: capacity)
@usableFromInline struct PinnedBytes<let capacity: Int>: ~Copyable, @unchecked Sendable {
  /// Nothing is written.
  @inlinable init() {}

  @inlinable deinit {
    wipeInPlace()
  }

  /// Not inlined: the optimiser, which moves what it destroys, keeps it where it is only as long as it sees no address taken.
  @inline(never) @inlinable borrowing func wipeInPlace() {
    unsafe wipe(start, byteCount: capacity)
  }

  /// Writes the first `count` bytes, likewise.
  @inline(never) @inlinable mutating func setZero(count: Int) {
    unsafe start.initialize(repeating: 0, count: count)
  }

  /// Where they are, for as long as this is neither moved nor gone.
  @usableFromInline var start: UnsafeMutablePointer<UInt8> {
    @_transparent get { unsafe UnsafeMutablePointer(Builtin.addressOfRawLayout(self)) }
  }

  /// The first `count` bytes, which must have been written.
  @_lifetime(borrow self)
  @_transparent
  @usableFromInline func bytes(count: Int) -> Span<UInt8> {
    let span = unsafe Span(_unsafeStart: UnsafePointer(start), count: count)
    return unsafe _overrideLifetime(span, borrowing: self)
  }

  /// The same, to be changed in place.
  @_lifetime(&self)
  @_transparent
  @usableFromInline mutating func mutableBytes(count: Int) -> MutableSpan<UInt8> {
    let span = unsafe MutableSpan(_unsafeStart: start, count: count)
    return unsafe _overrideLifetime(span, mutating: &self)
  }
}

extension Span where Element == UInt8 {
  /// Writes these bytes to memory that has room for them.
  func copy(to start: UnsafeMutablePointer<UInt8>) {
    unsafe withUnsafeBytes { bytes in
      guard let first = bytes.baseAddress else { return }
      unsafe UnsafeMutableRawPointer(start).copyMemory(from: first, byteCount: bytes.count)
    }
  }

  /// Writes these bytes behind the `used` first of `capacity`, and counts them; `tooLong`, and nothing changes, where they do
  /// not fit. One body for buffers of all capacities.
  @inline(never)
  func copy(
    to start: UnsafeMutablePointer<UInt8>, from used: inout Int, capacity: Int
  ) throws(EncodingFault) {
    guard count <= capacity - used else { throw .tooLong }
    unsafe copy(to: start + used)
    used += count
  }
}

/// A part that keeps the value it belongs to in memory.
///
/// Swift 6.3 passes a struct without one as if it were in registers, however large it is: copies of kilobytes on the stack,
/// of secrets too, and spans that point into them.
@_rawLayout(size: 1, alignment: 1)
public struct Pinned: ~Copyable, @unchecked Sendable {
  public init() {}
  @inlinable deinit {}
}

/// Where encoded bytes go: a buffer, or a hash that never holds them.
public protocol ByteSink: ~Copyable {
  /// Why it may take no more; `Never` for a hash.
  associatedtype Failure: Error

  /// Takes `bytes` at the end.
  mutating func append(_ bytes: Span<UInt8>) throws(Failure)

  /// Takes one byte at the end.
  mutating func append(_ byte: UInt8) throws(Failure)
}

extension ByteSink where Self: ~Copyable {
  public mutating func append(_ byte: UInt8) throws(Failure) {
    let single = InlineArray<1, UInt8>(repeating: byte)
    try append(single.span)
  }

  /// Takes the UTF-8 bytes of `text` at the end.
  public mutating func append(_ text: StaticString) throws(Failure) {
    let bytes = unsafe UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    try unsafe append(bytes.span)
  }

  /// Takes `value`, of at most 64 bits, at the end, most significant byte first.
  public mutating func append<Integer: FixedWidthInteger & UnsignedInteger>(
    bigEndian value: Integer
  ) throws(Failure) {
    let bytes = bigEndianBytes(UInt64(value))
    try append(bytes.span.extracting(last: Integer.bitWidth / 8))
  }

  /// Takes `label` and the zero byte that ends it: what tells one use of a hash or a key from another.
  public mutating func append(domain label: StaticString) throws(Failure) {
    try append(label)
    try append(0)
  }
}

/// The bytes of `value`, most significant first.
func bigEndianBytes(_ value: UInt64) -> InlineArray<8, UInt8> {
  unsafe unsafeBitCast(value.bigEndian, to: InlineArray<8, UInt8>.self)
}

/// A growing array as the place where encoded bytes go.
///
/// For the ends that have a heap: the verify path writes into ``ByteBuffer`` and hashes.
extension Array: ByteSink where Element == UInt8 {
  /// Takes `bytes` at the end.
  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }

  /// Copies `bytes`.
  public init(_ bytes: Span<UInt8>) {
    self = []
    append(bytes)
  }
}

extension ByteSink where Self: ~Copyable {
  /// Writes `bytes` as hexadecimal digits, lower case. For what is public: their values show in the time taken.
  public mutating func appendHexadecimal(_ bytes: Span<UInt8>) throws(Failure) {
    for index in bytes.indices {
      try append(hexadecimalDigit(bytes[index] >> 4))
      try append(hexadecimalDigit(bytes[index] & 15))
    }
  }
}

private func hexadecimalDigit(_ nibble: UInt8) -> UInt8 {
  nibble < 10 ? 0x30 + nibble : 0x57 + nibble
}

/// Why bytes could not be read or written.
public enum EncodingFault: Error {
  /// Not a well-formed, deterministic encoding (RFC 8949 §4.2.1; RFC 8259; RFC 4648 §4 and §5).
  case malformed
  /// Well-formed, but not the structure that belongs here.
  case unexpected
  /// Longer than the space that there is for it.
  case tooLong
}
