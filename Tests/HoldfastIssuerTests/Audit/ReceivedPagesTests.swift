import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

/// The record of pages that couriers bring: in any order, twice, with gaps, and from liars.
@Suite struct ReceivedPagesTests {
  private let device = DeviceID(filledWith: 1)
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func records() throws -> IssuedBaselinesDatabase {
    try IssuedBaselinesDatabase(path: folder.file("issuer.sqlite"), creating: true)
  }

  private func store(_ page: AuditPage, in records: inout IssuedBaselinesDatabase) throws -> ReceivedLog {
    try records.store(page, links: try page.links(), of: device)
  }

  @Test(arguments: [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 2, 0, 3, 1, 1]])
  func `pages in any order make the whole log, and nothing is acknowledged before what precedes it is there`(
    order: [Int]
  ) throws {
    let log = try DeviceLog(40)
    var records = try records()
    var seen: Set<Int> = []
    for index in order {
      let state = try store(log.page(10 * index + 1...10 * index + 10), in: &records)
      seen.insert(index)
      let whole = (0..<4).first { !seen.contains($0) } ?? 4
      #expect(state.through == (whole == 0 ? nil : log.chains[10 * whole]))
      #expect(state.missing == (whole == 4 ? nil : UInt64(10 * whole + 1)))
      #expect(!state.isForked)
    }
    #expect(try records.receivedEntries(of: device, after: 0, limit: 100) == log.entries)
  }

  @Test func `pages that overlap are one log`() throws {
    let log = try DeviceLog(30)
    var records = try records()
    _ = try store(log.page(1...12, of: 12), in: &records)
    _ = try store(log.page(20...25, of: 25), in: &records)
    #expect(try records.receivedLog(of: device).through == log.chains[12])
    let state = try store(log.page(8...22, of: 26), in: &records)
    #expect(state.through == log.chains[25])
    #expect(state.missing == 26)
  }

  @Test func `a page of another log is a fork, of which nothing is stored`() throws {
    let log = try DeviceLog(30)
    let other = try DeviceLog(30, forkedFrom: 15)
    for page in [other.page(10...20), other.page(16...20), other.page(21...25), other.page(5...10)] {
      var records = try IssuedBaselinesDatabase(path: folder.file("\(page.base.count).sqlite"), creating: true)
      _ = try store(log.page(1...30), in: &records)
      let state = try store(page, in: &records)
      #expect(state.isForked)
      #expect(try records.receivedEntries(of: device, after: 0, limit: 100) == log.entries)
    }
  }

  @Test func `a log of which the device has cut off the beginning is acknowledged from there on`() throws {
    let log = try DeviceLog(30)
    var records = try records()
    let early = try store(log.page(21...30, cut: 5), in: &records)
    #expect(early.through == nil)
    #expect(early.missing == 6)
    #expect(try store(log.page(6...20, cut: 5), in: &records).through == log.chains[30])
    var others = try IssuedBaselinesDatabase(path: folder.file("other.sqlite"), creating: true)
    #expect(try store(log.page(1...3, of: 3), in: &others).through == log.chains[3])
    #expect(try store(log.page(10...30, cut: 9), in: &others).through == log.chains[30])
  }

  @Test func `what was stored is there after the file is opened again`() throws {
    let log = try DeviceLog(10)
    do {
      var records = try records()
      _ = try store(log.page(1...10), in: &records)
    }
    let again = try IssuedBaselinesDatabase(path: folder.file("issuer.sqlite"), creating: false)
    #expect(try again.receivedLog(of: device).through == log.chains[10])
    let unknown = try again.receivedLog(of: DeviceID(filledWith: 2))
    #expect((unknown.through, unknown.count, unknown.cut, unknown.missing) == (nil, 0, 0, nil))
  }

  @Test func `entries that do not follow each other, or do not lead to the end of the log, are no part of it`() throws {
    let log = try DeviceLog(10)
    #expect(throws: AuditLinkFault.broken) { try log.page(1...10, of: 10).changed(end: log.chains[9]).links() }
    var gap = AuditPage(after: log.chains[0], of: log.chains[10], cut: 0)
    gap.take(log.entries[0])
    gap.take(log.entries[2])
    #expect(throws: AuditLinkFault.broken) { try gap.links() }
    var garbage = AuditPage(after: log.chains[0], of: log.chains[10], cut: 0)
    garbage.take([1, 2, 3])
    #expect(throws: AuditLinkFault.broken) { try garbage.links() }
  }
}
