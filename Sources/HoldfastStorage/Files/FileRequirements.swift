import Glibc

/// What a file must be like before its contents are read.
public struct FileRequirements: OptionSet, Sendable {
  /// The bits.
  public let rawValue: UInt8

  /// Makes a set of its bits.
  ///
  /// - Parameter rawValue: The bits.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The path itself is no symbolic link.
  public static let noSymbolicLink = FileRequirements(rawValue: 1)
  /// The owner is the user of this process.
  public static let owned = FileRequirements(rawValue: 2)
  /// The mode gives nothing to the group and to others.
  public static let isPrivate = FileRequirements(rawValue: 4)
  /// What a file with a secret must be like: owned and private.
  public static let secret: FileRequirements = [.owned, .isPrivate]

  /// Checks owner and mode of an open file.
  func check(_ status: stat) -> FileError.Kind? {
    if contains(.owned), status.st_uid != geteuid() { return .wrongOwner }
    if contains(.isPrivate), status.st_mode & 0o077 != 0 { return .tooOpen(mode: status.st_mode & 0o7777) }
    return nil
  }
}
