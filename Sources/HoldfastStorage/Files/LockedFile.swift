import Glibc

/// A file with a secret that one process uses at a time: the lock is on the file itself, as flock(1) takes it, until the value
/// is gone or the process ends.
public struct LockedFile: ~Copyable, Sendable {
  public let path: String
  /// Holds the lock.
  private var descriptor: Descriptor

  /// Takes the lock without waiting, and lends the contents, of which this only copy is wiped afterwards.
  ///
  /// - Parameters:
  ///   - path: A regular file of this user's, closed to others; no symbolic link.
  ///   - limit: The most bytes there may be.
  ///   - body: Receives the contents.
  /// - Throws: `locked` where another process has the lock, or has just replaced the file; otherwise as
  ///   ``Files/readSecretFile(at:limit:requirements:_:)``.
  public init(path: String, limit: Int, _ body: (Span<UInt8>) -> Void) throws(FileError) {
    let file = try ReadableFile(path, limit: limit, requirements: [.secret, .noSymbolicLink])
    do throws(SystemError) {
      try file.descriptor.lock()
      // Locked too late, it is a file that has lost its name to a newer one.
      guard try file.descriptor.isNamed(path) else { throw SystemError(EWOULDBLOCK) }
    } catch { throw FileError(error, at: path) }
    try file.lend(limit: limit, at: path, body)
    self.path = path
    descriptor = file.intoDescriptor()
  }

  /// Makes a file of mode 0600 where none has its name, and locks it. Throws as
  /// ``Files/writeFileAtomically(_:at:mode:overwrite:operations:)``.
  public init(
    creatingAt path: String, _ bytes: Span<UInt8>, operations: FileOperations = .system
  ) throws(FileError) {
    self.path = path
    descriptor = try Files.writtenFile(
      bytes, at: path, mode: 0o600, overwrite: false, isLocked: true, operations: operations)
  }

  /// Puts a file with these contents in its place, locked from the start: whatever fails, the old contents or the new ones
  /// are there. Throws as ``Files/writeFileAtomically(_:at:mode:overwrite:operations:)``.
  public mutating func replace(with bytes: Span<UInt8>, operations: FileOperations = .system) throws(FileError) {
    descriptor = try Files.writtenFile(
      bytes, at: path, mode: 0o600, overwrite: true, isLocked: true, operations: operations)
  }
}
