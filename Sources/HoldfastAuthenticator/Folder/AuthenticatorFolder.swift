import Glibc
import HoldfastOpenSSL
import HoldfastStorage

/// The folder in which a user's authenticator keeps its records: mode 0700, the file in it 0600.
public enum AuthenticatorFolder {
  /// The file in the folder.
  public static let fileName = "authenticator.sqlite"

  /// Opens the authenticator that is in a folder. Throws `missing` where there is none, `folder` for one of another kind, and
  /// what is wrong with it.
  public static func open(at path: String) throws(AuthenticatorFault) -> Authenticator {
    try open(at: path, cost: .interactive)
  }

  /// Opens the authenticator that is in a folder, and makes folder and file where they are not there.
  ///
  /// Throws `missing` without a folder above it, and what is wrong with it.
  public static func create(at path: String) throws(AuthenticatorFault) -> Authenticator {
    try create(at: path, cost: .interactive)
  }

  /// `cost` is that of new protections.
  static func open(at path: String, cost: ScryptCost) throws(AuthenticatorFault) -> Authenticator {
    try checkFolder(path)
    do throws(FileError) { try FolderKind.authenticator.require(ofFolder: path) } catch {
      throw AuthenticatorFault(error)
    }
    var status = stat()
    // An empty file is one whose making was interrupted.
    guard unsafe lstat(path + "/" + fileName, &status) == 0 else { throw errno == EACCES ? .noPermission : .missing }
    return try Authenticator(path: path + "/" + fileName, cost: cost)
  }

  static func create(at path: String, cost: ScryptCost) throws(AuthenticatorFault) -> Authenticator {
    do throws(FileError) {
      try Files.createPrivateDirectory(at: path)
      try FolderKind.authenticator.require(ofFolder: path)
    } catch { throw AuthenticatorFault(error) }
    return try Authenticator(path: path + "/" + fileName, cost: cost)
  }

  /// The folder must be this user's alone, and not a symbolic link.
  private static func checkFolder(_ path: String) throws(AuthenticatorFault) {
    guard !path.utf8.contains(0) else { throw .missing }
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else {
      throw errno == EACCES ? .noPermission : errno == ENOTDIR ? .notFolder : .missing
    }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw .notFolder }
    guard status.st_uid == geteuid() else { throw .wrongOwner }
    guard status.st_mode & 0o077 == 0 else { throw .tooOpen }
  }
}
