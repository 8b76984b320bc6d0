import Testing

@testable import HoldfastMeasurement

@Suite struct ExecutableImageTests {
  @Test func `a file without fs-verity is hashed as it is`() throws {
    let host = try HostFolder()
    #expect(try host.digest("app.image") == sha256(Array("the program".utf8)))
  }

  @Test func `what a service approves of a file is what a process measures of it`() throws {
    let host = try HostFolder()
    #expect(try ExecutableImage.digest(of: host.program) == host.digest("app.image"))
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
