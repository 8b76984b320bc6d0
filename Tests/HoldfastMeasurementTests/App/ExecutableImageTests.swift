import Testing

@testable import HoldfastMeasurement

@Suite struct ExecutableImageTests {
  @Test func `a file without fs-verity is hashed as it is`() throws {
    let host = try HostFolder()
    #expect(try host.digest("app.image") == sha256(Array("the program".utf8)))
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

  @Test(arguments: [(1, 32, "sha256"), (2, 64, "sha512")])
  func `an fs-verity digest goes by the name of its algorithm`(algorithm: UInt16, count: Int, name: String) throws {
    let digest = [UInt8](repeating: 9, count: count)
    let bytes = try ExecutableImage.verityBytes(algorithm: algorithm, digest: digest.span)
    #expect(bytes == Array(name.utf8) + [0] + digest)
  }

  @Test(arguments: [(0, 32), (3, 32), (1, 64), (2, 32), (1, 0)])
  func `an fs-verity algorithm that is not known is an error`(algorithm: UInt16, count: Int) {
    let digest = [UInt8](repeating: 9, count: count)
    #expect(throws: SystemFault.self) {
      try ExecutableImage.verityBytes(algorithm: algorithm, digest: digest.span)
    }
  }
}
