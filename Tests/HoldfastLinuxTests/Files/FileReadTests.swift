import Glibc
import TestSupport
import Testing

import HoldfastLinux

@Suite struct FileReadTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// The kind of error a read ends in; nil where it succeeds.
  private func fault(
    _ name: String, limit: Int = 100, requirements: FileRequirements = []
  ) -> FileError.Kind? {
    let path = folder.file(name)
    do {
      _ = try Files.readFile(at: path, limit: limit, requirements: requirements)
      return nil
    } catch {
      #expect(error.path == path)
      return error.kind
    }
  }

  @Test(arguments: [0, 1, 4095, 4096, 65536, 65537, 200_000])
  func `a file of any size is read whole`(byteCount: Int) throws {
    let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let path = try folder.makeFile("file", bytes)
    #expect(try Files.readFile(at: path, limit: byteCount) == bytes)
    #expect(try Files.readFile(at: path, limit: Int.max) == bytes)
    let sum = try Files.readSecretFile(at: path, limit: byteCount) { span in
      span.indices.allSatisfy { span[$0] == bytes[$0] } && span.count == byteCount
    }
    #expect(sum)
    #expect(try Files.readSecretFile(at: path, limit: Int.max) { $0.count } == byteCount)
  }

  @Test func `a file above the limit is refused`() throws {
    let path = try folder.makeFile("file", [1, 2, 3])
    #expect(fault("file", limit: 2) == .tooLarge)
    #expect(fault("file", limit: 0) == .tooLarge)
    #expect(fault("file", limit: -1) == .tooLarge)
    #expect(throws: FileError(.tooLarge, at: path)) { try Files.readSecretFile(at: path, limit: 2) { _ in } }
    #expect(throws: FileError(.tooLarge, at: path)) { try Files.readSecretFile(at: path, limit: -1) { _ in } }
  }

  @Test func `a huge file is refused by its size alone`() throws {
    let path = try folder.makeFile("file")
    #expect(unsafe truncate(path, 1 << 40) == 0)
    #expect(fault("file", limit: 1 << 20) == .tooLarge)
  }

  @Test func `a file of unknown size is read and limited while reading`() throws {
    #expect(try !Files.readFile(at: "/proc/self/status", limit: 1 << 16).isEmpty)
    #expect(throws: FileError(.tooLarge, at: "/proc/self/status")) {
      try Files.readFile(at: "/proc/self/status", limit: 10)
    }
    #expect(throws: FileError(.tooLarge, at: "/proc/self/status")) {
      try Files.readSecretFile(at: "/proc/self/status", limit: 10, requirements: []) { _ in }
    }
    #expect(try Files.readSecretFile(at: "/proc/self/status", limit: 1 << 16, requirements: []) { $0.count } > 10)
  }

  @Test func `a missing file or folder is not found`() throws {
    #expect(fault("missing") == .notFound)
    #expect(fault("missing/file") == .notFound)
    try folder.makeFile("file")
    #expect(fault("file/file") == .notDirectory)
    #expect(throws: FileError(.notFound, at: "")) { try Files.readFile(at: "", limit: 1) }
  }

  @Test func `a path with a zero byte is refused`() throws {
    try folder.makeFile("file", [1])
    #expect(fault("file\0.other") == .other(errno: EINVAL))
  }

  @Test func `a folder is refused`() {
    #expect(fault("") == .isDirectory)
  }

  @Test func `a FIFO, a socket and a device are refused at once`() throws {
    #expect(unsafe mkfifo(folder.file("fifo"), 0o600) == 0)
    #expect(fault("fifo") == .notRegular)
    #expect(unsafe mknod(folder.file("socket"), S_IFSOCK | 0o600, 0) == 0)
    #expect(fault("socket") == .notRegular)
    #expect(throws: FileError(.notRegular, at: "/dev/zero")) { try Files.readFile(at: "/dev/zero", limit: 1) }
  }

  @Test func `a symbolic link is followed unless it is forbidden`() throws {
    let path = try folder.makeFile("file", [1])
    #expect(unsafe symlink(path, folder.file("link")) == 0)
    #expect(fault("link") == nil)
    #expect(fault("link", requirements: .secret) == nil)
    #expect(fault("link", requirements: .noSymbolicLink) == .symbolicLink)
    #expect(fault("file", requirements: .noSymbolicLink) == nil)
  }

  @Test(arguments: [0o640, 0o604, 0o610, 0o622, 0o644, 0o4755])
  func `a secret that others may use is refused`(mode: Int) throws {
    let path = try folder.makeFile("file", [1], mode: mode)
    #expect(fault("file") == nil)
    #expect(fault("file", requirements: .secret) == .tooOpen(mode: UInt32(mode)))
    #expect(throws: FileError(.tooOpen(mode: UInt32(mode)), at: path)) {
      try Files.readSecretFile(at: path, limit: 10) { _ in Issue.record("read") }
    }
  }

  @Test(arguments: [0o600, 0o400, 0o700]) func `a private secret is read`(mode: Int) throws {
    let path = try folder.makeFile("file", [1, 2], mode: mode)
    #expect(try Files.readSecretFile(at: path, limit: 2) { $0.count } == 2)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
  func `a secret of another user is refused`() throws {
    let path = try folder.makeFile("file", [1])
    #expect(unsafe chown(path, 12345, 12345) == 0)
    #expect(fault("file", requirements: .owned) == .wrongOwner)
    #expect(fault("file", requirements: .secret) == .wrongOwner)
    #expect(fault("file") == nil)
  }

  @Test(.enabled(if: geteuid() != 0, "root may read everything"))
  func `a file that may not be read is no permission`() throws {
    try folder.makeFile("file", [1], mode: 0)
    #expect(fault("file") == .noPermission)
  }

  @Test func `a secret goes out in a type that cannot be copied`() throws {
    struct Key: ~Copyable {
      let first: UInt8
    }
    let path = try folder.makeFile("file", [42])
    let key = try Files.readSecretFile(at: path, limit: 1) { Key(first: $0[0]) }
    #expect(key.first == 42)
  }
}
