import Testing

@testable import HoldfastCore

@Suite struct UnauthenticatedTotalsTests {
  /// A status that is added later is found here, before a device has to count it.
  @Test func `there is a place for every status, and each count reads back`() throws {
    var totals = UnauthenticatedTotals()
    for (index, status) in Status.allCases.enumerated() {
      #expect(Int(status.rawValue) < UnauthenticatedTotals.placeCount)
      totals[status] = UInt64(index + 1)
    }
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
