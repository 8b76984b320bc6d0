import Glibc

/// An open regular file that meets the requirements of its reader.
struct ReadableFile: ~Copyable {
  let descriptor: Descriptor
  /// The size when it was opened; 0 for the files of `/proc`.
  let byteCount: Int

  init(_ path: String, limit: Int, requirements: FileRequirements) throws(FileError) {
    let opened = try Self.open(path, followsSymbolicLinks: !requirements.contains(.noSymbolicLink))
    let status = try Self.status(of: opened, at: path)
    let size = Int(status.st_size)
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFDIR: throw FileError(.isDirectory, at: path)
    default: throw FileError(.notRegular, at: path)
    }
    if let fault = requirements.check(status) { throw FileError(fault, at: path) }
    guard size <= limit else { throw FileError(.tooLarge, at: path) }
    byteCount = size
    descriptor = opened
  }

  /// Gives up all but the open file.
  consuming func intoDescriptor() -> Descriptor { descriptor }

  private static func open(_ path: String, followsSymbolicLinks: Bool) throws(FileError) -> Descriptor {
    // Not blocking: opening a FIFO would wait for a writer.
    let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (followsSymbolicLinks ? 0 : O_NOFOLLOW)
    do { return try Descriptor(opening: path, flags: flags) } catch { throw FileError(error, at: path) }
  }

  private static func status(of descriptor: borrowing Descriptor, at path: String) throws(FileError) -> stat {
    do { return try descriptor.status() } catch { throw FileError(error, at: path) }
  }

  /// Reads the contents, once.
  func contents(limit: Int, at path: String) throws(FileError) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(byteCount)
    var chunk = [UInt8](repeating: 0, count: min(max(byteCount, 4095), limit, 1 << 16) + 1)
    do throws(SystemError) {
      while true {
        let readCount = try descriptor.read(into: &chunk)
        if readCount == 0 { return bytes }
        guard readCount <= limit - bytes.count else { throw SystemError(EFBIG) }
        bytes.append(contentsOf: chunk[..<readCount])
      }
    } catch {
      throw FileError(error, at: path)
    }
  }

  /// Lends the contents, once, and wipes this only copy afterwards; see ``Files/readSecretFile(at:limit:requirements:_:)``.
  func lend<Result: ~Copyable>(
    limit: Int, at path: String, _ body: (Span<UInt8>) -> Result
  ) throws(FileError) -> Result {
    let capacity = min(limit, max(byteCount, 1 << 16))
    let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: capacity + 1)
    unsafe buffer.initialize(repeating: 0)
    defer {
      unsafe explicit_bzero(buffer.baseAddress!, buffer.count)
      unsafe buffer.deallocate()
    }
    var readCount = 0
    do throws(SystemError) {
      while true {
        let free = unsafe UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[readCount...])
        let count = try unsafe descriptor.read(into: free)
        if count == 0 { break }
        readCount += count
        guard readCount <= capacity else { throw SystemError(EFBIG) }
      }
    } catch {
      throw FileError(error, at: path)
    }
    return body(unsafe UnsafeBufferPointer(rebasing: buffer[..<readCount]).span)
  }
}

/// The system calls of an atomic write that can fail, so that a test can let each of them fail.
package struct FileOperations: Sendable {
  /// Writes bytes to a descriptor and returns how many; fewer is not an error.
  package var write: @Sendable (_ descriptor: Int32, _ bytes: Span<UInt8>) throws(SystemError) -> Int
  /// Brings a file or a folder to the disk.
  package var synchronize: @Sendable (_ descriptor: Int32) throws(SystemError) -> Void
  /// Renames within a folder; throws `EEXIST` where the new name is taken and `overwrite` is false.
  package var rename:
    @Sendable (_ directory: Int32, _ from: String, _ to: String, _ overwrite: Bool) throws(SystemError) -> Void

  /// The system calls.
  package static let system = FileOperations(
    write: { (descriptor, bytes) throws(SystemError) in
      try retrying { unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) } }
    },
    synchronize: { (descriptor) throws(SystemError) in
      try retrying { fsync(descriptor) }
    },
    rename: { (directory, from, to, overwrite) throws(SystemError) in
      try renameFile(in: directory, from: from, to: to, overwrite: overwrite)
    })

  /// Writes all of `bytes`.
  func writeAll(_ bytes: Span<UInt8>, to descriptor: Int32) throws(SystemError) {
    var written = 0
    while written < bytes.count {
      do throws(SystemError) {
        let byteCount = try write(descriptor, bytes.extracting(written..<bytes.count))
        guard byteCount > 0 else { throw SystemError(EIO) }
        written += byteCount
      } catch {
        guard error.number == EINTR else { throw error }
      }
    }
  }
}

private func renameFile(in directory: Int32, from: String, to: String, overwrite: Bool) throws(SystemError) {
  if overwrite {
    try retrying { unsafe renameat(directory, from, directory, to) }
  } else {
    // A hard link never replaces anything.
    try retrying { unsafe linkat(directory, from, directory, to, 0) }
    try retrying { unsafe unlinkat(directory, from, 0) }
  }
}
