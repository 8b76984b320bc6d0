import Foundation
import HoldfastLinux
import Testing

import HoldfastMeasurement

@Suite struct PageMapTests {
  @Test(arguments: [
    (present: 0, swapped: 0, file: 0, isFileBacked: true), (0, 0, 1, true), (0, 1, 0, false), (0, 1, 1, false),
    (1, 0, 0, false), (1, 0, 1, true), (1, 1, 0, false), (1, 1, 1, false),
  ])
  func `a page is the file's when it is not there, or there and not private`(
    present: UInt64, swapped: UInt64, file: UInt64, isFileBacked: Bool
  ) {
    let entry = present << 63 | swapped << 62 | file << 61
    #expect(PageMap.isFileBacked(entry: entry) == isFileBacked)
    // Frame number, soft-dirty, exclusive and write-protection bits say nothing of it.
    #expect(PageMap.isFileBacked(entry: entry | (1 << 61 - 1)) == isFileBacked)
  }

  @Test(arguments: [8, 20, 64, 4096])
  func `every page of the range counts and none beside it, however little is read at once`(chunkByteCount: Int) throws {
    let host = try HostFolder()
    for dirty in 0..<10 {
      try host.writePages(dirty: [dirty], count: 10)
      let pages = try PageMap(host.files)
      var chunk = [UInt8](repeating: 0, count: chunkByteCount)
      let isFileBacked = try pages.isFileBacked(0x2000..<0x8000, chunk: &chunk)
      #expect(isFileBacked == !(2..<8).contains(dirty), "page \(dirty)")
    }
  }

  @Test func `a page map that ends too early is an error`() throws {
    let host = try HostFolder()
    try host.writePages(dirty: [], count: 5)
    let pages = try PageMap(host.files)
    var chunk = [UInt8](repeating: 0, count: 4096)
    #expect(throws: MeasurementError.unreadable(.pageMap, code: EIO)) {
      try pages.isFileBacked(0x2000..<0x8000, chunk: &chunk)
    }
  }

  @Test func `in the running process, a page that was written to is private and its neighbours are the file's`() throws
  {
    let path = NSTemporaryDirectory() + "holdfast-pages-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: path) }
    let page = sysconf(Int32(_SC_PAGESIZE))
    try Data(repeating: 7, count: 3 * page).write(to: URL(filePath: path))
    let file = try Descriptor(opening: path, flags: O_RDONLY)
    let mapped = unsafe mmap(nil, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.number, 0)
    let memory = unsafe try #require(mapped)
    defer { unsafe munmap(memory, 3 * page) }
    let start = UInt64(UInt(bitPattern: memory))
    let size = UInt64(page)
    var chunk = [UInt8](repeating: 0, count: 4096)
    let before = try PageMap(HostFiles()).isFileBacked(start..<start + 3 * size, chunk: &chunk)
    unsafe memory.storeBytes(of: 1, toByteOffset: page + 5, as: UInt8.self)
    let whole = try PageMap(HostFiles()).isFileBacked(start..<start + 3 * size, chunk: &chunk)
    let first = try PageMap(HostFiles()).isFileBacked(start..<start + size, chunk: &chunk)
    let last = try PageMap(HostFiles()).isFileBacked(start + 2 * size..<start + 3 * size, chunk: &chunk)
    #expect(before && !whole && first && last)
  }
}

extension HostFolder {
  /// Writes a page map of pages that are present: private where they are named, else of files.
  func writePages(dirty: Set<Int>, count: Int = 16) throws {
    let entries = (0..<count).map { UInt64(1) << 63 | (dirty.contains($0) ? 0 : UInt64(1) << 61) }
    try unsafe entries.withUnsafeBytes { bytes in
      unsafe try Data(bytes).write(to: URL(filePath: root + "/proc/self/pagemap"))
    }
  }
}
