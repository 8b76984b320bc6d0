import Builtin

/// A buffer of up to `capacity` bytes, stored inline, which are wiped when they go out of scope.
public struct ByteBuffer<let capacity: Int>: ~Copyable, ByteSink, Sendable {
  @usableFromInline var storage = PinnedBytes<capacity>()
  /// The number of bytes in the buffer.
  public private(set) var count = 0

  /// Creates an empty buffer.
  public init() {}

  /// Creates a buffer of `zeroCount` zero bytes, at most `capacity`, to be written in place.
  init(zeros zeroCount: Int) {
    precondition(zeroCount <= capacity)
    count = zeroCount
    storage.setZero(count: zeroCount)
  }

  /// The bytes in the buffer; valid until the buffer changes.
  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    @_transparent
    get { storage.bytes(count: count) }
  }

  /// The bytes in the buffer, which the caller may change in place.
  public var mutableBytes: MutableSpan<UInt8> {
    @_lifetime(&self)
    mutating get { storage.mutableBytes(count: count) }
  }

  /// Appends `bytes`. Throws `tooLong`, and changes nothing, if they do not fit.
  public mutating func append(_ bytes: Span<UInt8>) throws(EncodingFault) {
    try unsafe bytes.copy(to: storage.start, from: &count, capacity: capacity)
  }

  /// Appends one byte. Throws `tooLong` if there is no room.
  public mutating func append(_ byte: UInt8) throws(EncodingFault) {
    guard count < capacity else { throw .tooLong }
    unsafe (storage.start + count).initialize(to: byte)
    count += 1
  }

  /// Appends `zeroCount` zero bytes, to be written in place. Throws `tooLong` if there is no room.
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

  /// Removes and wipes all bytes.
  public mutating func removeAll() {
    truncate(to: 0)
  }
}

/// Storage for `capacity` bytes that keeps its address, and is wiped there when it goes out of scope.
///
/// Swift 6.3 may load an `InlineArray` as a whole, and then lends and wipes a copy. It cannot load this type. A move
/// copies the bytes and leaves the old ones behind, so secrets that live long are made in their final place.
@_rawLayout(likeArrayOf: UInt8, count: capacity)
@usableFromInline struct PinnedBytes<let capacity: Int>: ~Copyable, @unchecked Sendable {
  /// Creates storage whose bytes are not initialised.
  @inlinable init() {}

  @inlinable deinit {
    wipeInPlace()
  }

  /// Wipes all bytes at their address. Not inlined: the optimiser moves a value that it destroys, unless it sees no
  /// address taken.
  @inline(never) @inlinable borrowing func wipeInPlace() {
    unsafe wipe(start, byteCount: capacity)
  }

  /// Writes zeros over the first `count` bytes. Not inlined for the same reason.
  @inline(never) @inlinable mutating func setZero(count: Int) {
    unsafe start.initialize(repeating: 0, count: count)
  }

  /// The address of the bytes, valid until the value is moved or destroyed.
  @usableFromInline var start: UnsafeMutablePointer<UInt8> {
    @_transparent get { unsafe UnsafeMutablePointer(Builtin.addressOfRawLayout(self)) }
  }

  /// Returns the first `count` bytes, which must have been written.
  @_lifetime(borrow self)
  @_transparent
  @usableFromInline func bytes(count: Int) -> Span<UInt8> {
    let span = unsafe Span(_unsafeStart: UnsafePointer(start), count: count)
    return unsafe _overrideLifetime(span, borrowing: self)
  }

  /// Returns the first `count` bytes, which the caller may change in place.
  @_lifetime(&self)
  @_transparent
  @usableFromInline mutating func mutableBytes(count: Int) -> MutableSpan<UInt8> {
    let span = unsafe MutableSpan(_unsafeStart: start, count: count)
    return unsafe _overrideLifetime(span, mutating: &self)
  }
}

extension Span where Element == UInt8 {
  /// Copies these bytes to memory that has room for them.
  func copy(to start: UnsafeMutablePointer<UInt8>) {
    unsafe withUnsafeBytes { bytes in
      guard let first = bytes.baseAddress else { return }
      unsafe UnsafeMutableRawPointer(start).copyMemory(from: first, byteCount: bytes.count)
    }
  }

  /// Copies these bytes to memory after the first `used` of `capacity` bytes, and adds their count to `used`. Throws
  /// `tooLong`, and changes nothing, if they do not fit. All buffers share this body, whatever their capacity.
  @inline(never)
  func copy(
    to start: UnsafeMutablePointer<UInt8>, from used: inout Int, capacity: Int
  ) throws(EncodingFault) {
    guard count <= capacity - used else { throw .tooLong }
    unsafe copy(to: start + used)
    used += count
  }
}

/// A member that keeps its enclosing value in memory.
///
/// Without such a member, Swift 6.3 passes a struct as if it were in registers, however large it is. It then copies
/// kilobytes on the stack, secrets included, and makes spans that point into those copies.
@_rawLayout(size: 1, alignment: 1)
public struct Pinned: ~Copyable, @unchecked Sendable {
  /// Creates the member.
  public init() {}
  @inlinable deinit {}
}

/// A destination for encoded bytes: a buffer, or a hash that never holds them.
public protocol ByteSink: ~Copyable {
  /// The error of a sink that takes no more bytes; `Never` for a hash.
  associatedtype Failure: Error

  /// Appends `bytes`.
  mutating func append(_ bytes: Span<UInt8>) throws(Failure)

  /// Appends one byte.
  mutating func append(_ byte: UInt8) throws(Failure)
}

extension ByteSink where Self: ~Copyable {
  /// Appends one byte.
  public mutating func append(_ byte: UInt8) throws(Failure) {
    let single = InlineArray<1, UInt8>(repeating: byte)
    try append(single.span)
  }

  /// Appends the UTF-8 bytes of `text`.
  public mutating func append(_ text: StaticString) throws(Failure) {
    let bytes = unsafe UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    try unsafe append(bytes.span)
  }

  /// Appends `value`, of at most 64 bits, most significant byte first.
  public mutating func append<Integer: FixedWidthInteger & UnsignedInteger>(
    bigEndian value: Integer
  ) throws(Failure) {
    let bytes = bigEndianBytes(UInt64(value))
    try append(bytes.span.extracting(last: Integer.bitWidth / 8))
  }

  /// Appends `label` and a zero byte, which separate one use of a hash or a key from another.
  public mutating func append(domain label: StaticString) throws(Failure) {
    try append(label)
    try append(0)
  }
}

/// Returns the bytes of `value`, most significant first.
func bigEndianBytes(_ value: UInt64) -> InlineArray<8, UInt8> {
  unsafe unsafeBitCast(value.bigEndian, to: InlineArray<8, UInt8>.self)
}

/// A growing array as a destination for encoded bytes.
///
/// It is for the ends that have a heap. The verify path writes into ``ByteBuffer`` and into hashes.
extension Array: ByteSink where Element == UInt8 {
  /// Appends `bytes`.
  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }

  /// Copies `bytes`.
  package init(_ bytes: Span<UInt8>) {
    self = []
    append(bytes)
  }
}

extension ByteSink where Self: ~Copyable {
  /// Appends `bytes` as hexadecimal digits in lower case. For public bytes only: the time taken depends on their
  /// values.
  package mutating func appendHexadecimal(_ bytes: Span<UInt8>) throws(Failure) {
    for index in bytes.indices {
      try append(hexadecimalDigit(bytes[index] >> 4))
      try append(hexadecimalDigit(bytes[index] & 15))
    }
  }
}

private func hexadecimalDigit(_ nibble: UInt8) -> UInt8 {
  nibble < 10 ? 0x30 + nibble : 0x57 + nibble
}

/// The reason why bytes could not be read or written.
public enum EncodingFault: Error {
  /// The bytes are not a well-formed, deterministic encoding (RFC 8949 §4.2.1; RFC 8259; RFC 4648 §4 and §5).
  case malformed
  /// The bytes are well-formed, but not the structure that belongs here.
  case unexpected
  /// The bytes are longer than the space for them.
  case tooLong
}
