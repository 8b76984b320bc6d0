import Testing

import HoldfastCore

@Suite struct UnauthenticatedTotalsTests {
  /// A new status without a counter is found here, before a device has to count it.
  @Test func `there is a place for every status, and each count reads back`() throws {
    var totals = UnauthenticatedTotals()
    try #require(Status.allCases.map { Int($0.rawValue) } == Array(0..<Status.count))
    for (index, status) in Status.allCases.enumerated() { totals[status] = UInt64(index + 1) }
    #expect(totals.statusCount == Status.allCases.count)
    for (index, status) in Status.allCases.enumerated() { #expect(totals[status] == UInt64(index + 1)) }
    let entry = AuditEntry(sequence: 1, time: 2, event: .unproved(totals))
    var bytes: [UInt8] = []
    entry.encode(into: &bytes)
    #expect(try AuditEntry(bytes.span) == entry)
  }

  @Test func `a count stays at its greatest`() {
    var totals = UnauthenticatedTotals()
    totals[.busy] = .max
    totals.add(totals)
    totals[.busy] += 1
    #expect(totals[.busy] == UInt64(UInt32.max))
  }
}
