import HoldfastCore
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastProver

/// A courier whose power fails at any write of its mail: a page is there until its receipt is, and nothing is half there.
@Suite struct MailPowerCutTests {
  private func page(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 288) }

  private func bulletin(_ number: UInt64) -> CarriedBulletin {
    CarriedBulletin(audience: AudienceID(filledWith: 1), number: number, predecessor: 0, bytes: [7])
  }

  /// The mail and the pages of a courier.
  private struct Carried: Equatable {
    var mail = Mail()
    var pages = CarriedPages()

    init(_ folder: EnrolmentFolder) { (mail, pages) = (folder.mail(), folder.pages()) }
  }

  /// Visits and calls of a service, in the order in which a courier has them.
  private func steps(_ prover: Prover, _ id: DeviceID) throws -> [() throws -> Void] {
    let folder = try prover.folder.requiredEntry(of: id).folder
    func taking(_ number: UInt8) throws {
      var (pages, mail) = (folder.pages(), folder.mail())
      pages.add(page(number))
      try folder.write(pages)
      mail.counts.pages += 1
      mail.receipt = nil
      try folder.write(mail)
    }
    let answer = #"{"receipt": "AQID", "missing": 9}"#
    return [
      { try taking(1) }, { try taking(2) },
      { _ = try prover.store([bulletin(10)], for: id) },
      { try prover.store(receipt: Array(answer.utf8), forPages: [page(1), page(2)], of: id) },
      { try taking(3) },
      { _ = try prover.store([bulletin(20)], for: id) },
    ]
  }

  @Test func `a power cut at any write leaves mail and pages as before it or as after it, and loses no page`() throws {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    let prover = Prover(state: place.file("phone"), keys: .default)
    let lock = try TestLock()
    let id = lock.descriptor.deviceID
    try recorder.recording { try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) } }
    let folder = try prover.folder.requiredEntry(of: id).folder
    var marks = [(changeCount: recorder.changes.count, carried: Carried(folder))]
    for step in try steps(prover, id) {
      try recorder.recording(step)
      marks.append((recorder.changes.count, Carried(folder)))
    }
    #expect(marks.last?.carried.pages.pages == [page(3)])
    let stage = { (count: Int) in marks.lastIndex { $0.changeCount <= count } ?? -1 }
    var (faults, cutCount): ([String], Int) = ([], 0)
    try PowerCuts(recorder.changes).forEach(stage: stage) { cut in
      let index = stage(cut.changeCount)
      guard index >= 0, faults.count < 5 else { return }
      cutCount += 1
      let next = marks[min(index + 1, marks.count - 1)].carried
      if let fault = try fault(of: cut.image, id, marks[index].carried, next) { faults.append("\(cut): \(fault)") }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
    #expect(cutCount > 3 * marks.count)
  }

  private func fault(of image: DiskImage, _ id: DeviceID, _ before: Carried, _ after: Carried) throws -> String? {
    let place = try TemporaryFolder(in: memoryFolder)
    try image.write(to: place.path)
    let prover = Prover(state: place.file("phone"), keys: .default)
    let found = Carried(try prover.folder.requiredEntry(of: id).folder)
    guard [before.mail, after.mail].contains(found.mail) else { return "the mail is neither: \(found.mail)" }
    guard [before.pages, after.pages].contains(found.pages) else { return "the pages are neither: \(found.pages)" }
    // A page goes only once the answer of its home is there.
    let isReceived = found.pages == after.pages && after.pages.pages.count < before.pages.pages.count
    if isReceived, found.mail != after.mail { return "pages are gone without the receipt" }
    return nil
  }
}
