import Glibc
import HoldfastLinux

/// Why the file layer refused an operation, and at which path; never any contents.
package struct FileError: Error, Equatable, Sendable {
  /// What went wrong.
  package enum Kind: Equatable, Sendable {
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
  package let kind: Kind
  /// The path as the caller gave it.
  package let path: String

  /// Makes an error, for callers that check more than this layer does.
  ///
  /// - Parameters:
  ///   - kind: What went wrong.
  ///   - path: Where.
  package init(_ kind: Kind, at path: String) {
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

/// A path taken apart into the folder and the name in it.
struct FilePath {
  /// The folder, "." where the path has none.
  let directory: String
  /// The last part.
  let name: String

  /// Refuses paths that do not end in a name.
  init(_ path: String) throws(FileError) {
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

  /// A path without slashes at its end, which would make the system follow a symbolic link.
  static func withoutTrailingSlashes(_ path: String) -> String {
    var bytes = path.utf8[...]
    while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
    return String(Substring(bytes))
  }
}

/// What a file must be like before its contents are read.
package struct FileRequirements: OptionSet, Sendable {
  /// The bits.
  package let rawValue: UInt8

  /// Makes a set of its bits.
  ///
  /// - Parameter rawValue: The bits.
  package init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The path itself is no symbolic link.
  package static let noSymbolicLink = FileRequirements(rawValue: 1)
  /// The owner is the user of this process.
  package static let owned = FileRequirements(rawValue: 2)
  /// The mode gives nothing to the group and to others.
  package static let isPrivate = FileRequirements(rawValue: 4)
  /// What a file with a secret must be like: owned and private.
  package static let secret: FileRequirements = [.owned, .isPrivate]

  /// Checks owner and mode of an open file.
  func check(_ status: stat) -> FileError.Kind? {
    if contains(.owned), status.st_uid != geteuid() { return .wrongOwner }
    if contains(.isPrivate), status.st_mode & 0o077 != 0 { return .tooOpen(mode: status.st_mode & 0o7777) }
    return nil
  }
}
