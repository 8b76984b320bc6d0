import HoldfastCore
import PowerCut
import TestSupport
import Testing

import HoldfastIssuer

/// Pages at a home whose power fails: what a receipt may have acknowledged is there, and the rest can be handed in again.
@Suite struct ReceivedPagesPowerCutTests {
  private let device = DeviceID(filledWith: 1)
  private static let name = "issuer.sqlite"

  /// A page twice, a gap that is filled later, and a page of another log.
  private func pages() throws -> (log: DeviceLog, pages: [AuditPage]) {
    let (log, other) = (try DeviceLog(30), try DeviceLog(30, forkedFrom: 12))
    return (
      log,
      [log.page(1...5), log.page(1...5), log.page(11...20), log.page(4...12), log.page(21...30), other.page(10...15)]
    )
  }

  @Test func `a power cut at any write of a page loses no entry that a receipt acknowledges`() throws {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    let (log, pages) = try pages()
    var states = [ReceivedLog()]
    var changeCounts: [Int] = []
    try recorder.recording {
      var records = try IssuedBaselinesDatabase(path: place.file(Self.name), creating: true)
      changeCounts.append(recorder.changes.count)
      for page in pages {
        states.append(try records.store(page, links: try page.links(), of: device))
        changeCounts.append(recorder.changes.count)
      }
    }
    #expect(states.last?.isForked == true)
    #expect(states.last?.through == log.chains[30])
    // The number of pages that were stored when so many changes had been made; nil before the database was.
    let stored = { (count: Int) in changeCounts.lastIndex { $0 <= count } }
    var (faults, cutCount): ([String], Int) = ([], 0)
    try PowerCuts(recorder.changes).forEach(stage: { stored($0) ?? -1 }) { cut in
      guard let count = stored(cut.changeCount), faults.count < 5 else { return }
      cutCount += 1
      let next = states[min(count + 1, pages.count)]
      if let fault = try fault(of: cut.image, [states[count], next], pages, log) { faults.append("\(cut): \(fault)") }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
    #expect(cutCount > 3 * pages.count)
  }

  private func fault(
    of image: DiskImage, _ permitted: [ReceivedLog], _ pages: [AuditPage], _ log: DeviceLog
  ) throws -> String? {
    let place = try TemporaryFolder(in: memoryFolder)
    try image.write(to: place.path)
    var records = try IssuedBaselinesDatabase(path: place.file(Self.name), creating: false)
    let state = try records.receivedLog(of: device)
    guard permitted.contains(state) else { return "it is in the state \(state)" }
    let entries = try records.receivedEntries(of: device, after: 0, limit: 100)
    guard entries.starts(with: log.entries.prefix(Int(state.through?.count ?? 0))) else {
      return "of the \(state.through?.count ?? 0) entries that are acknowledged, some are not there"
    }
    var again = state
    for page in pages { again = try records.store(page, links: try page.links(), of: device) }
    guard again.through == log.chains[30], again.isForked else { return "pages that come again lead to \(again)" }
    return try records.receivedEntries(of: device, after: 0, limit: 100) == log.entries ? nil : "entries are missing"
  }
}
