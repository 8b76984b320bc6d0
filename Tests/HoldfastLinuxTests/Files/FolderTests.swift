import Glibc
import HoldfastLinux
import TestSupport
import Testing

@Suite struct FolderTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func failure(_ kind: FileError.Kind, _ name: String) -> FileError {
    FileError(kind, at: folder.file(name))
  }

  @Test func `a private folder is made once and accepted again`() throws {
    #expect(try Files.createPrivateDirectory(at: folder.file("state")))
    #expect(try folder.mode("state") == 0o700)
    #expect(try !Files.createPrivateDirectory(at: folder.file("state")))
    #expect(try !Files.createPrivateDirectory(at: folder.file("state//")))
  }

  @Test func `the folder above is brought to the disk when a folder is made in it or a file removed from it`() throws {
    let calls = Counter()
    var operations = FileOperations.system
    operations.synchronize = { _ throws(SystemError) in
      _ = calls.next()
      throw SystemError(EIO)
    }
    #expect(throws: failure(.other(errno: EIO), "state")) {
      try Files.createPrivateDirectory(at: folder.file("state"), operations: operations)
    }
    let path = try folder.makeFile("file", [1])
    #expect(throws: failure(.other(errno: EIO), "file")) { try Files.removeFile(at: path, operations: operations) }
    #expect(calls.next() == 2)
    #expect(try folder.names() == ["state"])
  }

  @Test func `what the system cannot bring to the disk is a fault`() throws {
    #expect(throws: SystemError(EBADF)) { try FileOperations.system.synchronize(-1) }
  }

  @Test(arguments: [0o750, 0o701, 0o770, 0o777]) func `a folder open to others is refused`(mode: Int) throws {
    try Files.createPrivateDirectory(at: folder.file("state"))
    #expect(unsafe chmod(folder.file("state"), mode_t(mode)) == 0)
    #expect(throws: failure(.tooOpen(mode: UInt32(mode)), "state")) {
      try Files.createPrivateDirectory(at: folder.file("state"))
    }
  }

  @Test func `a symbolic link to a private folder is refused, with a slash too`() throws {
    try Files.createPrivateDirectory(at: folder.file("state"))
    #expect(unsafe symlink(folder.file("state"), folder.file("link")) == 0)
    for name in ["link", "link/"] {
      #expect(throws: failure(.symbolicLink, name)) { try Files.createPrivateDirectory(at: folder.file(name)) }
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a folder away"))
  func `a folder of another user is refused`() throws {
    try Files.createPrivateDirectory(at: folder.file("state"))
    #expect(unsafe chown(folder.file("state"), 12345, 12345) == 0)
    #expect(throws: failure(.wrongOwner, "state")) { try Files.createPrivateDirectory(at: folder.file("state")) }
  }

  @Test func `a file in the place of a folder is refused`() throws {
    try folder.makeFile("state")
    #expect(throws: failure(.notDirectory, "state")) { try Files.createPrivateDirectory(at: folder.file("state")) }
    #expect(throws: failure(.notFound, "a/b")) { try Files.createPrivateDirectory(at: folder.file("a/b")) }
  }

  @Test func `a file is removed`() throws {
    let path = try folder.makeFile("file", [1])
    try Files.removeFile(at: path)
    #expect(try folder.names().isEmpty)
    #expect(throws: failure(.notFound, "file")) { try Files.removeFile(at: path) }
    try Files.createPrivateDirectory(at: path)
    #expect(throws: failure(.isDirectory, "file")) { try Files.removeFile(at: path) }
  }

  @Test func `removing a symbolic link keeps its target`() throws {
    let target = try folder.makeFile("target", [1])
    #expect(unsafe symlink(target, folder.file("link")) == 0)
    try Files.removeFile(at: folder.file("link"))
    #expect(try folder.names() == ["target"])
  }

  @Test func `a second holder of a lock is refused until the first is gone`() throws {
    do {
      let first = try DirectoryLock(directory: folder.path)
      #expect(throws: FileError(.locked, at: folder.path)) { _ = try DirectoryLock(directory: folder.path) }
      #expect(try folder.mode("lock") == 0o600)
      _ = consume first
    }
    _ = try DirectoryLock(directory: folder.path)
  }

  @Test func `a lock is the folder's, by whatever path it is reached`() throws {
    try Files.createPrivateDirectory(at: folder.file("device"))
    #expect(unsafe symlink(folder.file("device"), folder.file("link")) == 0)
    #expect(unsafe symlink(folder.path, folder.file("above")) == 0)
    let workingFolder = unsafe realpath(".", nil)!
    defer { unsafe free(workingFolder) }
    let depth = unsafe String(cString: workingFolder).split(separator: "/").count
    let relative = String(repeating: "../", count: depth) + folder.file("device").drop { $0 == "/" }
    let first = try DirectoryLock(directory: folder.file("device"))
    for path in [folder.file("link"), folder.file("above/device"), folder.file("device/../device/"), relative] {
      #expect(throws: FileError(.locked, at: path)) { _ = try DirectoryLock(directory: path) }
    }
    _ = consume first
    _ = try DirectoryLock(directory: relative)
  }

  @Test func `a lock needs a folder and a plain file`() throws {
    #expect(throws: failure(.notFound, "missing")) { _ = try DirectoryLock(directory: folder.file("missing")) }
    try folder.makeFile("file")
    #expect(throws: failure(.notDirectory, "file")) { _ = try DirectoryLock(directory: folder.file("file")) }
    #expect(unsafe symlink(folder.file("file"), folder.file("lock")) == 0)
    #expect(throws: failure(.symbolicLink, "lock")) { _ = try DirectoryLock(directory: folder.path) }
  }

  @Test(
    arguments: [
      ("/", nil, nil), ("a", ".", "a"), ("/a", "/", "a"), ("a/b", "a", "b"), ("/a//b", "/a/", "b"), ("a/..", nil, nil),
    ] as [(String, String?, String?)])
  func `a path is taken apart`(path: String, directory: String?, name: String?) {
    let place = try? FilePath(path)
    #expect(place?.directory == directory)
    #expect(place?.name == name)
  }

  @Test func `no path and the folder above all are told apart`() {
    #expect(throws: FileError(.notFound, at: "")) { try FilePath("") }
    #expect(throws: FileError(.isDirectory, at: "/")) { try Files.createPrivateDirectory(at: "/") }
  }

  @Test func `a folder that may not be made is told from one that is not there`() {
    #expect(throws: FileError(.noPermission, at: "/sys/holdfast")) {
      try Files.createPrivateDirectory(at: "/sys/holdfast")
    }
  }

  @Test func `a call that a signal interrupts is made again, and no other`() throws {
    for (number, count) in [(EINTR, 3), (EIO, 1)] {
      var calls = 0
      let error = #expect(throws: SystemError.self) {
        try retrying { () -> Int32 in
          calls += 1
          errno = calls < 3 ? number : ENOSPC
          return -1
        }
      }
      #expect(calls == count)
      #expect(error == SystemError(number == EINTR ? ENOSPC : number))
    }
  }

  @Test func `no other program gets what is open here`() throws {
    let opened = try Descriptor(opening: folder.path, flags: O_RDONLY | O_DIRECTORY)
    #expect(fcntl(opened.number, F_GETFD) & FD_CLOEXEC != 0)
  }
}
