import Testing

import HoldfastMeasurement

@Suite struct MemoryMapTests {
  @Test func `a line of the map is read field by field`() throws {
    let mapping = try #require(
      parse("7f00a000-7f00b000 rwxp 0001f000 fe:01 253911                     /usr/lib/a b.so"))
    #expect(mapping.addresses == 0x7f00_a000..<0x7f00_b000)
    #expect(mapping.isWritable)
    #expect(mapping.isExecutable)
    #expect(mapping.fileOffset == 0x1f000)
    #expect(mapping.identity == FileIdentity(deviceMajor: 0xfe, deviceMinor: 1, inode: 253911))
    #expect(!mapping.isDeleted)
    #expect(mapping.name == Array("/usr/lib/a b.so".utf8))
    #expect(mapping.isFileBacked)
  }

  @Test func `a deleted file goes by its name`() throws {
    let mapping = try #require(parse("1000-2000 r-xp 00000000 fe:00 9 /usr/bin/app (deleted)"))
    #expect(mapping.name == Array("/usr/bin/app".utf8))
    #expect(mapping.isDeleted)
    #expect(mapping.isFileBacked)
  }

  @Test func `only the kernel's own code counts as such, not files of that name`() throws {
    #expect(try #require(parse("1000-2000 r-xp 00000000 00:00 0 [vdso]")).isKernelCode)
    #expect(try #require(parse("1000-2000 --xp 00000000 00:00 0 [vsyscall]")).isKernelCode)
    for name in ["", "[stack]", "[anon:[vdso]]", "/tmp/[vdso]", "[vdso] ", "[uprobes]"] {
      #expect(try !#require(parse("1000-2000 r-xp 00000000 00:00 0 \(name)")).isKernelCode, "\(name)")
    }
  }

  @Test(arguments: [
    "", "1000", "1000-2000", "2000-1000 r-xp 0 fe:00 1 /a", "1000-1000 r-xp 0 fe:00 1 /a", "1000-2000 r-x 0 fe:00 1 /a",
    "1000-2000 r-xp x fe:00 1 /a", "1000-2000 r-xp 0 fe:00 x /a", "10000000000000000-2 r-xp 0 fe:00 1 /a",
    "-2000 r-xp 0 fe:00 1 /a", "1000-2000 r-xp 0 fe 1 /a", "1000-2000 r-xp 0 x:00 1 /a", "1000-2000 r-xp 0 fe:x 1 /a",
  ])
  func `what is not a line of the map is malformed`(line: String) {
    #expect(parse(line) == nil)
    #expect(throws: MeasurementError.malformed(.memoryMap)) { try MemoryMap(parsing: Array(line.utf8)) }
  }

  @Test func `neighbours of one file that were split are one segment again`() throws {
    let map = try self.map(
      "1000-2000 r-xp 00000000 fe:00 9 /a", "2000-3000 rwxp 00001000 fe:00 9 /a", "3000-5000 r-xp 00002000 fe:00 9 /a",
      "5000-6000 r-xp 00009000 fe:00 9 /a", "6000-7000 r-xp 0000a000 fe:00 8 /b")
    #expect(map.executableSegments.map(\.addresses) == [0x1000..<0x5000, 0x5000..<0x6000, 0x6000..<0x7000])
  }

  @Test(arguments: [
    "2000-3000 r-xp 00001000 fe:01 9 /a", "2000-3000 r-xp 00001000 fd:00 9 /a", "2000-3000 r-xp 00001000 fe:00 8 /a",
    "2000-3000 r-xp 00001000 fe:00 9 /b", "2000-3000 r-xp 00001000 fe:00 9 /a (deleted)",
    "2000-3000 r-xp 00002000 fe:00 9 /a", "3000-4000 r-xp 00001000 fe:00 9 /a",
  ])
  func `neighbours that are not one are two segments`(line: String) throws {
    #expect(try map("1000-2000 r-xp 00000000 fe:00 9 /a", line).executableSegments.count == 2)
  }

  @Test func `the executable comes first, then paths, offsets and lengths`() throws {
    let segments = try map(
      "1000-2000 r-xp 00001000 fe:00 1 /usr/lib/b", "3000-4000 r-xp 00000000 fe:00 1 /usr/lib/b",
      "5000-6000 r-xp 00000000 fe:00 2 /usr/lib/a", "7000-8000 r-xp 00000000 fe:00 3 /usr/zz",
      "9000-b000 r-xp 00000000 fe:00 1 /usr/lib/b"
    ).executableSegments
    let sorted = segments.shuffled().sorted { $0.precedes($1, executable: Array("/usr/zz".utf8)) }
    #expect(sorted.map(\.addresses.lowerBound) == [0x7000, 0x5000, 0x3000, 0x9000, 0x1000])
  }

  private func parse(_ line: String) -> MemoryMapping? { MemoryMapping(parsing: Array(line.utf8)[...]) }

  private func map(_ lines: String...) throws -> MemoryMap {
    try MemoryMap(parsing: Array(lines.joined(separator: "\n").utf8))
  }
}
