import HoldfastCore
import Testing

import HoldfastMeasurement

@Suite struct ExecutableTextTests {
  let host: HostFolder

  init() throws { host = try HostFolder() }

  @Test func `code is hashed with offset and length, the executable first, and the kernel's left out`() throws {
    var bytes = [UInt8](repeating: 0, count: 6) + [0x10, 0] + [UInt8](repeating: 0, count: 6) + [0x20, 0]
    bytes += host.memory[0x2000..<0x4000]
    bytes += [UInt8](repeating: 0, count: 6) + [0x20, 0] + [UInt8](repeating: 0, count: 6) + [0x10, 0]
    bytes += host.memory[0x8000..<0x9000]
    #expect(try host.digest("app.text") == sha256(bytes))
  }

  @Test func `other addresses and another order of the map do not show`() throws {
    let before = try host.digest("app.text")
    try host.write(
      "/proc/self/maps",
      """
      00004000-00005000 r-xp 00002000 fe:00 22 /usr/lib/libone.so.1
      00009000-0000b000 r-xp 00001000 fe:00 11 \(host.program)

      """)
    let memory = host.memory
    let moved = memory[..<0x4000] + memory[0x8000..<0x9000] + memory[..<0x4000] + memory[0x2000..<0x4000]
    try host.write("/proc/self/mem", String(decoding: moved, as: UTF8.self))
    #expect(try host.digest("app.text") == before)
  }

  @Test func `a program that was moved or deleted while it ran is the same`() throws {
    let before = try host.digest("app.text")
    try host.write("/proc/self/maps", host.cleanMap.replacing(host.program, with: host.program + " (deleted)"))
    #expect(try host.digest("app.text") == before)
  }

  @Test(arguments: [0x2000, 0x3fff, 0x8000, 0x8fff])
  func `a byte of code that differs in memory shows`(address: Int) throws {
    let before = try host.digest("app.text")
    var memory = host.memory
    memory[address] = 0x2e
    try host.write("/proc/self/mem", String(decoding: memory, as: UTF8.self))
    #expect(try host.digest("app.text") != before)
  }

  @Test(arguments: [0x1fff, 0x4000, 0x6000, 0xc000])
  func `a byte of anything else does not`(address: Int) throws {
    let before = try host.digest("app.text")
    var memory = host.memory
    memory[address] = 0x2e
    try host.write("/proc/self/mem", String(decoding: memory, as: UTF8.self))
    #expect(try host.digest("app.text") == before)
  }

  @Test func `memory that ends too early is an error`() throws {
    try host.write("/proc/self/mem", String(decoding: host.memory[..<0x8800], as: UTF8.self))
    #expect(throws: MeasurementError.unreadable(.memory, code: 5)) { try host.measurement() }
  }

  @Test func `another object's code shows`() throws {
    let before = try host.digest("app.text")
    try host.addMapping("0000e000-0000f000 r-xp 00000000 fe:00 33 /tmp/extra.so")
    #expect(try host.digest("app.text") != before)
  }

  @Test func `an unchanged segment of a file with fs-verity goes in by its digest, which no bytes could imitate`()
    throws
  {
    let withBytes = try host.digest("app.text")
    try haveVerity()
    var bytes = bigEndian(0x1000) + bigEndian(0x2000) + host.memory[0x2000..<0x4000]
    bytes += [UInt8](repeating: 0xff, count: 8) + verity + bigEndian(0x2000) + bigEndian(0x1000)
    #expect(try host.digest("app.text") == sha256(bytes))
    #expect(try host.digest("app.text") != withBytes)
    let use = try host.measurement().verity
    #expect(use.segmentCount == 1 && use.allSegmentCount == 2 && !use.hasImage)
  }

  @Test func `what lies in memory does not matter then, and the digest does`() throws {
    try haveVerity()
    let before = try host.digest("app.text")
    try host.write("/proc/self/mem", String(decoding: host.memory[..<0x4000], as: UTF8.self))
    #expect(try host.digest("app.text") == before)
    host.code[HostFolder.library]?.verity?[20] ^= 1
    #expect(try host.digest("app.text") != before)
  }

  @Test(arguments: ["00001000", "00003000"])
  func `which part of the file it is matters then as well`(offset: String) throws {
    try haveVerity()
    let before = try host.digest("app.text")
    try host.write(
      "/proc/self/maps", host.cleanMap.replacing("r-xp 00002000 fe:00 22", with: "r-xp \(offset) fe:00 22"))
    #expect(try host.digest("app.text") != before)
    try host.write("/proc/self/maps", host.cleanMap.replacing("00008000-00009000", with: "00008000-0000a000"))
    #expect(try host.digest("app.text") != before)
  }

  @Test func `one private page of the segment, and its bytes are read`() throws {
    let withBytes = try host.digest("app.text")
    try haveVerity()
    try host.writePages(dirty: [8])
    #expect(try host.digest("app.text") == withBytes)
    #expect(try host.measurement().verity.segmentCount == 0)
    try host.writePages(dirty: [0, 1, 2, 3, 4, 5, 6, 7, 9, 10])
    #expect(try host.digest("app.text") != withBytes)
  }

  @Test(arguments: ["another inode", "another minor", "another major", "deleted", "no verity"])
  func `a file that may be another than the one that is mapped does not speak for it`(way: String) throws {
    let withBytes = try host.digest("app.text")
    try haveVerity()
    switch way {
    case "another inode": host.code[HostFolder.library]?.identity.inode = 23
    case "another minor": host.code[HostFolder.library]?.identity.deviceMinor = 1
    case "another major": host.code[HostFolder.library]?.identity.deviceMajor = 0xfd
    case "deleted": try host.write("/proc/self/maps", host.cleanMap.replacing(".so.1", with: ".so.1 (deleted)"))
    default: host.code[HostFolder.library]?.verity = nil
    }
    #expect(try host.digest("app.text") == withBytes)
    #expect(try host.measurement().verity.segmentCount == 0)
  }

  @Test func `without the page map, fs-verity is an error and not believed`() throws {
    try haveVerity()
    try host.remove("/proc/self/pagemap")
    #expect(throws: MeasurementError.unreadable(.pageMap, code: 2)) { try host.measurement() }
  }

  private let verity = Array("sha256".utf8) + [0] + [UInt8](repeating: 9, count: 32)

  /// Gives the library fs-verity, and every page a file behind it.
  private func haveVerity() throws {
    host.code[HostFolder.library] = HostFolder.file(inode: 22, verity: verity)
    try host.writePages(dirty: [])
  }

  private func bigEndian(_ number: UInt16) -> [UInt8] {
    [UInt8](repeating: 0, count: 6) + [UInt8(number >> 8), UInt8(number & 0xff)]
  }
}
