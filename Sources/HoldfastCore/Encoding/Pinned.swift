/// A part that keeps the value it belongs to in memory.
///
/// Swift 6.3 passes a struct without one as if it were in registers, however large it is: copies of kilobytes on the stack,
/// of secrets too, and spans that point into them.
@_rawLayout(size: 1, alignment: 1)
public struct Pinned: ~Copyable, @unchecked Sendable {
  public init() {}
  @inlinable deinit {}
}
