import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastProver

/// The pages of an audit log that a prover carries home.
@Suite struct CarriedPagesTests {
  private func page(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 288) }

  /// A prover that is enrolled at a device.
  private func enrolled() throws -> (TemporaryFolder, Prover, DeviceID) {
    let place = try TemporaryFolder(in: memoryFolder)
    let (prover, lock) = (Prover(state: place.file("phone"), keys: .default), try TestLock())
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
    return (place, prover, lock.descriptor.deviceID)
  }

  @Test func `of more than sixteen pages, the oldest are dropped`() {
    var pages = CarriedPages()
    for number in UInt8(0)..<20 { pages.add(page(number)) }
    #expect(pages.pages.map { $0[0] } == Array(4..<20))
    pages.remove([page(4), page(19), page(0)])
    #expect(pages.pages.map { $0[0] } == Array(5..<19))
  }

  @Test func `pages are as they were when they are read again, and a damaged file is no page`() throws {
    let (place, prover, id) = try enrolled()
    defer { _ = place }
    let folder = try prover.folder.requiredEntry(of: id).folder
    #expect(folder.pages() == CarriedPages())
    var pages = CarriedPages()
    for number in UInt8(0)..<16 { pages.add([UInt8](repeating: number, count: AuditPage.maximumSealedByteCount)) }
    try folder.write(pages)
    #expect(folder.pages() == pages)
    #expect(try prover.auditPages(of: id) == pages.pages)
    let bytes = try folder.read(CarriedPages.fileName, limit: 1 << 20)
    for damaged in [Array(bytes.dropLast()), bytes + [0], [0x81, 0x41, 0x00], [0xa0], []] as [[UInt8]] {
      try folder.write(damaged, as: CarriedPages.fileName)
      #expect(folder.pages() == CarriedPages())
    }
  }

  @Test func `pages that were handed in are removed, others stay, and the receipt is kept for the device`() throws {
    let (place, prover, id) = try enrolled()
    defer { _ = place }
    let folder = try prover.folder.requiredEntry(of: id).folder
    var pages = CarriedPages()
    for number in UInt8(1)...3 { pages.add(page(number)) }
    try folder.write(pages)
    let handedIn = [page(1), page(2)]
    try prover.store(receipt: Array(#"{"receipt": "AQID", "missing": 9}"#.utf8), forPages: handedIn, of: id)
    #expect(folder.pages().pages == [page(3)])
    #expect(folder.mail().receipt == [1, 2, 3])
    #expect(folder.mail().missingEntry == 9)
    #expect(folder.mail().counts.handedIn == 2)
    // Without a newer receipt, the earlier one stays.
    try prover.store(receipt: Array(#"{"receipt": null, "missing": null}"#.utf8), forPages: [page(3)], of: id)
    #expect(folder.pages().pages == [])
    #expect(folder.mail().receipt == [1, 2, 3])
    #expect(folder.mail().missingEntry == 0)
    for bad in ["", "{}", "[]"] {
      #expect(throws: ProverError.self) { try prover.store(receipt: Array(bad.utf8), forPages: [], of: id) }
    }
  }

  @Test func `the answer of a service is read strictly`() throws {
    func receipt(_ json: String) throws -> CarriedReceipt? {
      CarriedReceipt(try JSONValue(parsing: Array(json.utf8), byteLimit: 4096))
    }
    #expect(try receipt(#"{"receipt": "AQID", "missing": 7}"#) == CarriedReceipt([1, 2, 3], missing: 7))
    #expect(try receipt(#"{"receipt": null, "missing": null}"#) == CarriedReceipt(nil, missing: 0))
    for bad in [
      "{}", #"{"receipt": null}"#, #"{"missing": 3}"#, #"{"receipt": 5, "missing": null}"#,
      #"{"receipt": "AQI", "missing": null}"#, #"{"receipt": "AQID", "missing": "7"}"#,
    ] {
      #expect(try receipt(bad) == nil, "\(bad)")
    }
    let long = String(repeating: "A", count: 4 * 86)
    #expect(try receipt(#"{"receipt": "\#(long)", "missing": null}"#) == nil)
  }
}
