import Glibc

/// Why the file layer refused an operation, and at which path; never any contents.
public struct FileError: Error, Equatable, Sendable {
  /// What went wrong.
  public enum Kind: Equatable, Sendable {
    /// There is no such file, or a folder on the way is missing.
    case notFound
    /// The system refuses access.
    case noPermission
    /// The file system is mounted so that nothing is written.
    case readOnly
    /// A folder, where a file is needed.
    case isDirectory
    /// A folder of another kind than the one that is needed.
    case anotherKind(FolderKind)
    /// Something else, where a folder is needed.
    case notDirectory
    /// A FIFO, a socket or a device, where a file is needed.
    case notRegular
    /// A symbolic link, where none is allowed.
    case symbolicLink
    /// More bytes than the caller's limit.
    case tooLarge
    /// The group or others may read, write or enter; the mode is the twelve permission bits.
    case tooOpen(mode: UInt32)
    /// The owner is not the user of this process.
    case wrongOwner
    /// There is a file already, and overwriting was not allowed.
    case exists
    /// Somebody else holds the lock.
    case locked
    /// The disk or the quota is exhausted.
    case diskFull
    /// Any other `errno`.
    case other(errno: Int32)
  }

  /// What went wrong.
  public let kind: Kind
  /// The path as the caller gave it.
  public let path: String

  /// Makes an error, for callers that check more than this layer does.
  ///
  /// - Parameters:
  ///   - kind: What went wrong.
  ///   - path: Where.
  public init(_ kind: Kind, at path: String) {
    self.kind = kind
    self.path = path
  }

  init(_ error: SystemError, at path: String) {
    self.init(Kind(error.number), at: path)
  }
}

extension FileError.Kind {
  /// Translates an `errno`.
  init(_ number: Int32) {
    switch number {
    case ENOENT: self = .notFound
    case EACCES, EPERM: self = .noPermission
    case EROFS: self = .readOnly
    case EISDIR: self = .isDirectory
    case ENOTDIR: self = .notDirectory
    case ELOOP: self = .symbolicLink
    case ENXIO: self = .notRegular
    case EEXIST, ENOTEMPTY: self = .exists
    case EWOULDBLOCK: self = .locked
    case ENOSPC, EDQUOT: self = .diskFull
    case EFBIG: self = .tooLarge
    default: self = .other(errno: number)
    }
  }
}
