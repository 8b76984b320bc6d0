import Glibc
import HoldfastLinux
import TestSupport
import Testing

@Suite struct LockedFileTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func open(_ name: String = "file") throws(FileError) -> [UInt8] {
    var contents: [UInt8] = []
    _ = try LockedFile(path: folder.file(name), limit: 10) { bytes in
      for index in bytes.indices { contents.append(bytes[index]) }
    }
    return contents
  }

  private var locked: FileError { FileError(.locked, at: folder.file("file")) }

  @Test func `its contents are lent, and only one has it`() throws {
    try folder.makeFile("file", [1, 2])
    #expect(try open() == [1, 2])
    let file = try LockedFile(path: folder.file("file"), limit: 10) { _ in }
    #expect(throws: locked) { try open() }
    withExtendedLifetime(file) {}
  }

  @Test func `a new one and one that replaces it are locked from the start`() throws {
    let contents: [UInt8] = [3]
    var file = try LockedFile(creatingAt: folder.file("file"), contents.span)
    #expect(throws: locked) { try open() }
    #expect(throws: FileError(.exists, at: folder.file("file"))) {
      _ = try LockedFile(creatingAt: folder.file("file"), contents.span)
    }
    let newer: [UInt8] = [4, 5]
    try file.replace(with: newer.span)
    #expect(throws: locked) { try open() }
    #expect(try folder.contents("file") == newer)
    #expect(try folder.mode("file") == 0o600)
    #expect(try folder.names() == ["file"])
    release(file)
    #expect(try open() == newer)
  }

  @Test func `flock on the file keeps it out, as the program of that name does`() throws {
    let path = try folder.makeFile("file", [1])
    let descriptor = unsafe Glibc.open(path, O_RDONLY)
    #expect(flock(descriptor, LOCK_EX) == 0)
    #expect(throws: locked) { try open() }
    _ = close(descriptor)
    #expect(try open() == [1])
  }

  @Test func `a file that was replaced after it was opened has its name no longer`() throws {
    let path = try folder.makeFile("file", [1])
    let old = try Descriptor(opening: path, flags: O_RDONLY)
    #expect(try old.isNamed(path))
    try Files.writeFileAtomically([1], at: path, overwrite: true)
    let isNamed = try old.isNamed(path)
    #expect(!isNamed)
    #expect(unsafe unlink(path) == 0)
    #expect(throws: SystemError(ENOENT)) { try old.isNamed(path) }
  }

  @Test func `where it cannot be replaced, the old one stays, and stays locked`() throws {
    try folder.makeFile("file", [1])
    var file = try LockedFile(path: folder.file("file"), limit: 10) { _ in }
    var operations = FileOperations.system
    operations.rename = { (_, _, _, _) throws(SystemError) in throw SystemError(EROFS) }
    let newer: [UInt8] = [2]
    do throws(FileError) {
      try file.replace(with: newer.span, operations: operations)
      Issue.record("it was replaced")
    } catch { #expect(error == FileError(.readOnly, at: folder.file("file"))) }
    #expect(throws: locked) { try open() }
    #expect(try folder.names() == ["file"])
    #expect(try folder.contents("file") == [1])
    release(file)
  }

  @Test(arguments: [(0o644, true), (0o600, false)])
  func `one that is open to others, or too long, is not lent`(mode: Int, isTooOpen: Bool) throws {
    try folder.makeFile("file", [UInt8](repeating: 1, count: isTooOpen ? 1 : 11), mode: mode)
    let kind: FileError.Kind = isTooOpen ? .tooOpen(mode: 0o644) : .tooLarge
    #expect(throws: FileError(kind, at: folder.file("file"))) { try open() }
  }

  private func release(_ file: consuming LockedFile) {}
}
