import Glibc
import HoldfastLinux
import TestSupport
import Testing

@Suite struct FileWriteTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func write(
    _ bytes: [UInt8], _ name: String = "file", mode: UInt32 = 0o600, overwrite: Bool = true,
    operations: FileOperations = .system
  ) throws(FileError) {
    try Files.writeFileAtomically(
      bytes, at: folder.file(name), mode: mode, overwrite: overwrite, operations: operations)
  }

  private func failure(_ kind: FileError.Kind, _ name: String = "file") -> FileError {
    FileError(kind, at: folder.file(name))
  }

  @Test(arguments: [0, 1, 100_000], [false, true])
  func `a new file has its contents and no company`(byteCount: Int, overwrite: Bool) throws {
    let bytes = [UInt8](repeating: 3, count: byteCount)
    try write(bytes, overwrite: overwrite)
    #expect(try folder.contents("file") == bytes)
    #expect(try folder.names() == ["file"])
  }

  @Test(arguments: [0o600, 0o644, 0o400, 0o666] as [UInt32])
  func `the mode is exact whatever the umask is`(mode: UInt32) throws {
    try write([1], mode: mode)
    #expect(try folder.mode("file") == Int(mode))
  }

  @Test func `an existing file is replaced, its mode too`() throws {
    try folder.makeFile("file", [1, 2, 3], mode: 0o644)
    try write([4])
    #expect(try folder.contents("file") == [4])
    #expect(try folder.mode("file") == 0o600)
  }

  @Test func `an existing file is kept when overwriting is not allowed`() throws {
    try folder.makeFile("file", [1, 2, 3])
    #expect(throws: failure(.exists)) { try write([4], overwrite: false) }
    #expect(try folder.contents("file") == [1, 2, 3])
    #expect(try folder.names() == ["file"])
  }

  @Test func `a symbolic link is replaced and its target is kept`() throws {
    let target = try folder.makeFile("target", [1])
    #expect(unsafe symlink(target, folder.file("file")) == 0)
    #expect(throws: failure(.exists)) { try write([2], overwrite: false) }
    try write([2])
    #expect(try folder.contents("target") == [1])
    #expect(try folder.contents("file") == [2])
    #expect(try Files.readFile(at: folder.file("file"), limit: 1, requirements: .noSymbolicLink) == [2])
  }

  @Test func `a folder is not replaced`() throws {
    try Files.createPrivateDirectory(at: folder.file("file"))
    #expect(throws: failure(.isDirectory)) { try write([1]) }
    #expect(throws: failure(.exists)) { try write([1], overwrite: false) }
    #expect(throws: failure(.isDirectory, "file/")) { try write([1], "file/") }
    #expect(throws: failure(.isDirectory, "..")) { try write([1], "..") }
    #expect(try folder.names() == ["file"])
  }

  @Test func `a missing folder is not found`() {
    #expect(throws: failure(.notFound, "missing/file")) { try write([1], "missing/file") }
  }

  @Test func `a name with a zero byte or too long is refused and leaves nothing`() throws {
    #expect(throws: failure(.other(errno: EINVAL), "a\0b")) { try write([1], "a\0b") }
    let long = String(repeating: "n", count: 256)
    #expect(throws: failure(.other(errno: ENAMETOOLONG), long)) { try write([1], long) }
    #expect(try folder.names().isEmpty)
  }

  @Test(arguments: [ENOSPC, EDQUOT, EIO], [false, true])
  func `a write that fails leaves what was there`(number: Int32, hasOld: Bool) throws {
    var operations = FileOperations.system
    operations.write = { _, _ throws(SystemError) in throw SystemError(number) }
    try expectUntouched(operations, FileError.Kind(number), hasOld: hasOld)
  }

  @Test(arguments: [false, true]) func `a write that fails half way leaves what was there`(hasOld: Bool) throws {
    let calls = Counter()
    var operations = FileOperations.system
    operations.write = { descriptor, bytes throws(SystemError) in
      guard calls.next() % 3 < 2 else { throw SystemError(ENOSPC) }
      return try FileOperations.system.write(descriptor, bytes.extracting(first: 1))
    }
    try expectUntouched(operations, .diskFull, hasOld: hasOld)
    #expect(calls.next() == 6)
  }

  @Test(arguments: [false, true]) func `a write of nothing is a fault, not a loop`(hasOld: Bool) throws {
    var operations = FileOperations.system
    operations.write = { _, _ throws(SystemError) in 0 }
    try expectUntouched(operations, .other(errno: EIO), hasOld: hasOld)
  }

  @Test(arguments: [false, true]) func `an fsync that fails leaves what was there`(hasOld: Bool) throws {
    var operations = FileOperations.system
    operations.synchronize = { _ throws(SystemError) in throw SystemError(EIO) }
    try expectUntouched(operations, .other(errno: EIO), hasOld: hasOld)
  }

  @Test(arguments: [false, true]) func `a rename that fails leaves what was there`(hasOld: Bool) throws {
    var operations = FileOperations.system
    operations.rename = { _, _, _, _ throws(SystemError) in throw SystemError(EACCES) }
    try expectUntouched(operations, .noPermission, hasOld: hasOld)
  }

  @Test func `an fsync of the folder that fails is told, with the new contents in place`() throws {
    try folder.makeFile("file", [1])
    let calls = Counter()
    var operations = FileOperations.system
    operations.synchronize = { _ throws(SystemError) in if calls.next() == 1 { throw SystemError(EIO) } }
    #expect(throws: failure(.other(errno: EIO))) { try write([2], operations: operations) }
    #expect(try folder.contents("file") == [2])
    #expect(try folder.names() == ["file"])
  }

  @Test func `the file is brought to the disk before it is renamed, the folder after`() throws {
    let log = Log()
    var operations = FileOperations.system
    operations.write = { descriptor, bytes throws(SystemError) in
      log.add("write")
      return try FileOperations.system.write(descriptor, bytes)
    }
    operations.synchronize = { descriptor throws(SystemError) in
      log.add("synchronize")
      try FileOperations.system.synchronize(descriptor)
    }
    operations.rename = { directory, from, to, overwrite throws(SystemError) in
      log.add("rename")
      try FileOperations.system.rename(directory, from, to, overwrite)
    }
    try write([1], operations: operations)
    #expect(log.entries == ["write", "synchronize", "rename", "synchronize"])
  }

  @Test func `interrupted and short writes are continued`() throws {
    let calls = Counter()
    var operations = FileOperations.system
    operations.write = { descriptor, bytes throws(SystemError) in
      if calls.next() % 2 == 0 { throw SystemError(EINTR) }
      return try FileOperations.system.write(descriptor, bytes.extracting(first: 3))
    }
    let bytes = [UInt8](0..<100)
    try write(bytes, operations: operations)
    #expect(try folder.contents("file") == bytes)
  }

  /// Writes with a fault, and expects the old contents, or no file, and no temporary file.
  private func expectUntouched(_ operations: FileOperations, _ kind: FileError.Kind, hasOld: Bool) throws {
    if hasOld { try folder.makeFile("file", [1, 2, 3]) }
    for overwrite in [true, hasOld] {
      #expect(throws: failure(kind)) { try write([UInt8](0..<100), overwrite: overwrite, operations: operations) }
      #expect(try folder.names() == (hasOld ? ["file"] : []))
      if hasOld { #expect(try folder.contents("file") == [1, 2, 3]) }
    }
  }
}
