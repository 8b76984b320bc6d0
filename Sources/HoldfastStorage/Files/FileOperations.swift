import Glibc

/// The system calls of an atomic write that can fail, so that a test can let each of them fail.
public struct FileOperations: Sendable {
  /// Writes bytes to a descriptor and returns how many; fewer is not an error.
  public var write: @Sendable (_ descriptor: Int32, _ bytes: Span<UInt8>) throws(SystemError) -> Int
  /// Brings a file or a folder to the disk.
  public var synchronize: @Sendable (_ descriptor: Int32) throws(SystemError) -> Void
  /// Renames within a folder; throws `EEXIST` where the new name is taken and `overwrite` is false.
  public var rename:
    @Sendable (_ directory: Int32, _ from: String, _ to: String, _ overwrite: Bool) throws(SystemError) -> Void

  /// The system calls.
  public static let system = FileOperations(
    write: { (descriptor, bytes) throws(SystemError) in
      try retrying { unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) } }
    },
    synchronize: { (descriptor) throws(SystemError) in
      try retrying { fsync(descriptor) }
    },
    rename: { (directory, from, to, overwrite) throws(SystemError) in
      try renameFile(in: directory, from: from, to: to, overwrite: overwrite)
    })
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
