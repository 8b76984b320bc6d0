import Glibc
import TestSupport
import Testing

import HoldfastLinux

@Suite struct RereadFileTests {
  let folder: TemporaryFolder
  let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.makeFile("file", [1, 2, 3])
  }

  private func file() -> RereadFile { RereadFile(path: path, limit: 8, requirements: [.owned, .noSymbolicLink]) }

  /// Overwrites the same file, and leaves its time as it was.
  private func overwrite(_ bytes: [UInt8]) throws {
    var status = stat()
    try #require(unsafe stat(path, &status) == 0)
    let descriptor = unsafe open(path, O_WRONLY | O_TRUNC)
    try #require(unsafe write(descriptor, bytes, bytes.count) == bytes.count)
    let times = [status.st_atim, status.st_mtim]
    try #require(unsafe futimens(descriptor, times) == 0)
    close(descriptor)
  }

  @Test func `a file that stays the same is no change, however often it is read`() throws {
    var file = file()
    #expect(try file.read())
    for _ in 0..<3 {
      #expect(try !file.read())
      #expect(file.bytes == [1, 2, 3])
    }
  }

  @Test(arguments: [[1, 2, 4], [1, 2], [1, 2, 3, 4], []] as [[UInt8]])
  func `a change of the contents is seen, although the file and its time are the same`(bytes: [UInt8]) throws {
    var file = file()
    #expect(try file.read())
    try overwrite(bytes)
    #expect(try file.read())
    #expect(file.bytes == bytes)
    #expect(try !file.read())
  }

  @Test func `a file that replaces another is read`() throws {
    var file = file()
    #expect(try file.read())
    let other = try folder.makeFile("other", [7])
    #expect(unsafe rename(other, path) == 0)
    #expect(try file.read())
    #expect(file.bytes == [7])
    // The same contents in another file are no change.
    let same = try folder.makeFile("same", [7])
    #expect(unsafe rename(same, path) == 0)
    #expect(try !file.read())
  }

  @Test func `what may no longer be read is an error each time, and never the last contents`() throws {
    var file = file()
    #expect(try file.read())
    try overwrite([UInt8](repeating: 0, count: 9))
    for _ in 0..<2 {
      #expect(throws: FileError(.tooLarge, at: path)) { try file.read() }
      #expect(file.bytes == [])
    }
    #expect(unsafe unlink(path) == 0)
    #expect(throws: FileError(.notFound, at: path)) { try file.read() }
    #expect(unsafe symlink(try folder.makeFile("target", [1, 2, 3]), path) == 0)
    #expect(throws: FileError(.symbolicLink, at: path)) { try file.read() }
    #expect(unsafe unlink(path) == 0)
    _ = try folder.makeFile("file", [1, 2, 3])
    #expect(try file.read())
    #expect(file.bytes == [1, 2, 3])
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
  func `a file that was given to another user is refused, although it is the same`() throws {
    var file = file()
    #expect(try file.read())
    #expect(unsafe chown(path, 12345, 12345) == 0)
    #expect(throws: FileError(.wrongOwner, at: path)) { try file.read() }
  }
}
