import Testing

import HoldfastCore

/// The labels of a map are in the order of their encoded bytes, as deterministic CBOR has them.
@Suite struct CBORLabelOrderTests {
  @Test func `labels rise from 0 on, and the negative ones come after them, from -1 down`() throws {
    var order = CBORLabelOrder()
    for label in [0, 1, 23, 75_000, -1, -2, -75_000] as [Int64] { try order.advance(to: label) }
  }

  @Test(arguments: [(0, 0), (1, 0), (75_000, 1), (-1, 0), (-1, 1), (-1, -1), (-2, -1)] as [(Int64, Int64)])
  func `a label that comes again or too late is malformed`(first: Int64, second: Int64) throws {
    var order = CBORLabelOrder()
    try order.advance(to: first)
    #expect(throws: EncodingFault.malformed) { try order.advance(to: second) }
  }
}
