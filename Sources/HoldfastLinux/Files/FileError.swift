import Glibc

/// A reason why the file layer refused an operation, and the path; never any contents.
public struct FileError: Error, Equatable, Sendable {
  /// A kind of failure.
  public enum Kind: Equatable, Sendable {
    /// The file does not exist, or a folder of the path is missing.
    case notFound
    /// The system refuses access.
    case noPermission
    /// The file system is mounted read-only.
    case readOnly
    /// The path is a folder, and a file is required.
    case isDirectory
    /// The folder has another kind than the required one.
    case anotherKind(FolderKind)
    /// The path is not a folder, and a folder is required.
    case notDirectory
    /// The path is a FIFO, a socket or a device node, and a regular file is required.
    case notRegular
    /// The path is a symbolic link, and none is allowed.
    case symbolicLink
    /// The file has more bytes than the caller's limit.
    case tooLarge
    /// The group or others may read, write or enter. The mode is the twelve permission bits.
    case tooOpen(mode: UInt32)
    /// The owner is not the user of this process.
    case wrongOwner
    /// The file already exists, and overwriting was not allowed.
    case exists
    /// Another process holds the lock.
    case locked
    /// The disk or the quota is exhausted.
    case diskFull
    /// Any other `errno`.
    case other(errno: Int32)
  }

  /// The kind of failure.
  public let kind: Kind
  /// The path as the caller gave it.
  public let path: String

  /// Creates an error, for callers that check more than this layer does.
  ///
  /// - Parameters:
  ///   - kind: The kind of failure.
  ///   - path: The path at which it occurred.
  package init(_ kind: Kind, at path: String) {
    self.kind = kind
    self.path = path
  }

  /// Creates an error from a failed system call.
  ///
  /// - Parameters:
  ///   - error: The system's error.
  ///   - path: The path at which it occurred.
  package init(_ error: SystemError, at path: String) {
    self.init(Kind(error.number), at: path)
  }
}

extension FileError.Kind {
  /// Translates an `errno`.
  package init(_ number: Int32) {
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

/// A path, split into a folder and a name in it.
package struct FilePath {
  /// The folder; "." if the path has none.
  package let directory: String
  /// The last component.
  package let name: String

  /// Splits a path. It throws `isDirectory` for a path that does not end in a name.
  package init(_ path: String) throws(FileError) {
    guard !path.utf8.contains(0) else { throw FileError(.other(errno: EINVAL), at: path) }
    guard !path.isEmpty else { throw FileError(.notFound, at: path) }
    if let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) {
      let folder = path.utf8[..<slash]
      directory = folder.isEmpty ? "/" : String(Substring(folder))
      name = String(Substring(path.utf8[path.utf8.index(after: slash)...]))
    } else {
      directory = "."
      name = path
    }
    guard !["", ".", ".."].contains(name) else { throw FileError(.isDirectory, at: path) }
  }

  /// Returns a path without slashes at its end, because these would make the system follow a symbolic link.
  static func withoutTrailingSlashes(_ path: String) -> String {
    var bytes = path.utf8[...]
    while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
    return String(Substring(bytes))
  }
}

/// The conditions that a file must meet before its contents are read.
package struct FileRequirements: OptionSet, Sendable {
  /// The bits.
  package let rawValue: UInt8

  /// Creates the set with the given bits.
  ///
  /// - Parameter rawValue: The bits.
  package init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The path itself is not a symbolic link.
  package static let noSymbolicLink = FileRequirements(rawValue: 1)
  /// The owner is the user of this process.
  package static let owned = FileRequirements(rawValue: 2)
  /// The mode gives no rights to the group and to others.
  package static let isPrivate = FileRequirements(rawValue: 4)
  /// The mode does not allow the group or others to write.
  package static let unwritableByOthers = FileRequirements(rawValue: 8)
  /// The conditions for a file with a secret: owned and private.
  package static let secret: FileRequirements = [.owned, .isPrivate]

  /// Checks owner and mode of an open file; returns nil if they meet the conditions.
  func check(_ status: stat) -> FileError.Kind? {
    if contains(.owned), status.st_uid != geteuid() { return .wrongOwner }
    let forbidden: mode_t = contains(.isPrivate) ? 0o077 : contains(.unwritableByOthers) ? 0o022 : 0
    if status.st_mode & forbidden != 0 { return .tooOpen(mode: status.st_mode & 0o7777) }
    return nil
  }
}
