import Testing

import HoldfastMeasurement

/// The header of an ELF program, 64 or 52 bytes, all of them ASCII.
private func program(
  class width: UInt8 = 2, order: UInt8 = 1, version: UInt8 = 1, type: UInt8 = 3, entry: UInt8 = 0x40
) -> String {
  var header = [UInt8](repeating: 0, count: width == 1 ? 52 : 64)
  header.replaceSubrange(0..<7, with: [0x7f, 0x45, 0x4c, 0x46, width, order, version])
  header[order == 2 ? 17 : 16] = type
  header[24] = entry
  return String(decoding: header, as: UTF8.self)
}

@Suite struct ExecutableImageTests {
  @Test func `a file without fs-verity is hashed as it is`() throws {
    let host = try HostFolder()
    #expect(try host.digest("app.image") == sha256(Array("the program".utf8)))
  }

  @Test func `what a service approves of a file is what a process measures of it`() throws {
    let host = try HostFolder()
    try host.write("/usr/bin/program", program())
    #expect(try ExecutableImage.digest(of: host.program) == host.digest("app.image"))
  }

  @Test func `a program of 32 bits is approved as well, and one whose bytes go the other way`() throws {
    let host = try HostFolder()
    for text in [program(class: 1), program(order: 2), program(class: 1, order: 2)] {
      try host.write("/usr/bin/program", text)
      #expect(throws: Never.self) { try ExecutableImage.digest(of: host.program) }
    }
  }

  @Test(arguments: [
    "", "root:x:0:0:root:/root:/bin/sh\n", "#!/bin/sh\n", "\u{7f}ELF", "\u{7f}ELF\u{2}\u{1}\u{1}",
    program(class: 3), program(order: 0), program(version: 2), program(type: 1), program(type: 4), program(entry: 0),
    String(program().dropLast()),
  ])
  func `a file that is no program is not approved`(text: String) throws {
    let host = try HostFolder()
    try host.write("/usr/bin/program", text)
    #expect(throws: MeasurementError.malformed(.executable)) { try ExecutableImage.digest(of: host.program) }
  }

  @Test func `a file larger than one chunk is hashed to its end`() throws {
    let host = try HostFolder()
    let text = String(repeating: "a", count: Measurer.chunkByteCount + 3)
    try host.write("/usr/bin/program", text)
    #expect(try host.digest("app.image") == sha256(Array(text.utf8)))
  }

  @Test func `a file that cannot be opened is an error`() throws {
    let host = try HostFolder()
    try host.remove("/usr/bin/program")
    #expect(throws: MeasurementError.unreadable(.executable, code: 2)) { try host.measurement() }
  }
}
