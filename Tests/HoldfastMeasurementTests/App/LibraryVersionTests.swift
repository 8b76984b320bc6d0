import HoldfastCore
import TestSupport
import Testing

import HoldfastMeasurement

@Suite struct LibraryVersionTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func find(_ bytes: [UInt8]) throws -> AppVersion? {
    try LibraryVersion.find(inProgramAt: folder.makeFile("program", bytes))
  }

  private func find(_ text: String) throws -> AppVersion? { try find(Array(text.utf8)) }

  @Test func `a program that was linked with the library has the library's version`() throws {
    #expect(LibraryVersion.own > .zero)
    #expect(try LibraryVersion.find(inProgramAt: "/proc/self/exe") == LibraryVersion.own)
  }

  @Test func `the lowest of several versions counts, wherever it is`() throws {
    let beginning = "holdfast library"  // In pieces, so that the search does not find it in this program.
    let (old, new) = ("\(beginning) version 0.9.12;", "\(beginning) version 1.0.3;")
    let oldest = AppVersion(major: 0, minor: 9, patch: 12)
    #expect(try find("\(new)x\(old)") == oldest && find("\(old)\(new)") == oldest)
    for offset in -40...2 {
      let gap = [UInt8](repeating: 0x68, count: Measurer.chunkByteCount + offset)
      #expect(try find(Array(new.utf8) + gap + Array(old.utf8) + gap) == oldest, "\(offset)")
    }
  }

  @Test func `what is no version does not count`() throws {
    for wrong in ["1.2;", "1.2.3", "1.2.3.4;", "1..3;", "1.2.x;", "1.2.123456;", "", "-1.2.3;", "1.2.3 ;"] {
      #expect(try find("holdfast library version \(wrong)\n") == nil, "\(wrong)")
    }
    #expect(try find("") == nil)
    #expect(try find("Holdfast library version 1.2.3;") == nil)
    #expect(throws: MeasurementError.self) { try LibraryVersion.find(inProgramAt: folder.file("missing")) }
  }
}
