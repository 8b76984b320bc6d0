import Builtin

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
