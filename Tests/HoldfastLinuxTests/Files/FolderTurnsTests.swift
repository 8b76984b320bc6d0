import HoldfastLinux
import TestSupport
import Testing

@Suite struct FolderTurnsTests {
  private struct Held: Error {}

  @Test func `a turn ends with its body, also where that throws, and meanwhile nobody else has one`() throws {
    let folder = try TemporaryFolder()
    let first = try FolderTurns(directory: folder.path)
    let second = try FolderTurns(directory: folder.path)
    try first.take(orThrow: Held()) { () throws(Held) in
      #expect(throws: Held.self) { try second.take(timeoutMilliseconds: 2, orThrow: Held()) { () throws(Held) in } }
    }
    #expect(throws: Held.self) { try second.take(orThrow: Held()) { () throws(Held) in throw Held() } }
    #expect(try first.take(timeoutMilliseconds: 0, orThrow: Held()) { () throws(Held) in 5 } == 5)
    #expect(try folder.names().isEmpty)
  }

  @Test func `there are no turns over what is no folder`() throws {
    let folder = try TemporaryFolder()
    let missing = folder.path + "/missing"
    #expect(throws: FileError(.notFound, at: missing)) { try FolderTurns(directory: missing) }
  }
}
