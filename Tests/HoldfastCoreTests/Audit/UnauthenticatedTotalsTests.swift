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

  @Test func `totals begin at zero, and are read in order, each status once with a count of at least 1`() throws {
    var totals = UnauthenticatedTotals()
    #expect(totals.statusCount == 0 && totals[.busy] == 0)
    (totals[.tokenInvalid], totals[.busy]) = (1, 1)
    let entry = AuditEntry(sequence: 1, time: 2, event: .unproved(totals))
    var bytes: [UInt8] = []
    entry.encode(into: &bytes)
    let numbers = [Status.tokenInvalid, .busy].map(\.rawValue).sorted()
    let rows = [[0x82, numbers[0], 1], [0x82, numbers[1], 1]] as [[UInt8]]
    try #require(Array(bytes.suffix(6)) == rows[0] + rows[1])
    let head = Array(bytes.dropLast(6))
    for bad in [rows[1] + rows[0], rows[0] + rows[0], rows[0] + [0x82, numbers[1], 0]] {
      let changed = head + bad
      #expect(throws: EncodingFault.self) { _ = try AuditEntry(changed.span) }
    }
  }

  @Test func `a count stays at its greatest`() {
    var totals = UnauthenticatedTotals()
    totals[.busy] = .max
    totals.add(totals)
    totals[.busy] += 1
    #expect(totals[.busy] == UInt64(UInt32.max))
  }
}
