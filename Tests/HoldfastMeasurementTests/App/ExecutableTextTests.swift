import HoldfastCore
import Testing

@testable import HoldfastMeasurement

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
}
