import Glibc
import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

/// A user's authenticator: the secrets that he shares with devices, and the codes and seals that they make.
///
/// For one thread at a time; other processes may use the same folder. Whatever changes is one transaction, durable before
/// anything that rests on it is returned.
package final class Authenticator {
  let tables: AuthenticatorTables
  /// What a new blinding by a PIN costs.
  let cost: ScryptCost
  var cryptography = OpenSSLCryptography()

  init(path: String, cost: ScryptCost) throws(AuthenticatorFault) {
    tables = try AuthenticatorTables(path: path)
    self.cost = cost
  }

  /// All records, or a user's, by user and index. Throws `busy`, `corrupt`, `failed`.
  package func records(user: String? = nil) throws(AuthenticatorFault) -> [Record] {
    try tables.records(of: user).map(\.record)
  }

  /// The record of a purpose, of a user and index where these are given.
  ///
  /// Throws `noRecords` when there is none at all, `unknownRecord`, and `severalUsers` or `severalRecords` where it has to be
  /// said which one.
  package func record(
    user: String? = nil, index: Int? = nil, purpose: RecordPurpose
  ) throws(AuthenticatorFault) -> Record {
    let all = try records()
    guard !all.isEmpty else { throw .noRecords }
    let matching = all.filter { record in
      record.purpose == purpose && (user ?? record.user).utf8.elementsEqual(record.user.utf8)
        && (index ?? record.index) == record.index
    }
    guard let first = matching.first else { throw .unknownRecord }
    guard matching.allSatisfy({ $0.user.utf8.elementsEqual(first.user.utf8) }) else { throw .severalUsers }
    guard matching.count == 1 else { throw .severalRecords }
    return first
  }

  /// Reads a record anew in the transaction that changes it. Throws `busy` when its secret is not `secret` any more.
  func current(_ record: Record, with secret: BlindedSecret) throws(AuthenticatorFault) -> StoredRecord {
    guard let stored = try tables.record(record.user, record.index) else { throw .unknownRecord }
    guard let now = stored.secret, now.isSame(as: secret) else { throw .busy }
    return stored
  }

  func stored(_ user: String, _ index: Int) throws(AuthenticatorFault) -> StoredRecord {
    guard let stored = try tables.record(user, index) else { throw .unknownRecord }
    return stored
  }
}

/// The folder in which a user's authenticator keeps its records: mode 0700, the file in it 0600.
package enum AuthenticatorFolder {
  /// The file in the folder.
  package static let fileName = "authenticator.sqlite"

  /// Opens the authenticator that is in a folder. Throws `missing` where there is none, `folder` for one of another kind, and
  /// what is wrong with it.
  package static func open(at path: String) throws(AuthenticatorFault) -> Authenticator {
    try open(at: path, cost: .interactive)
  }

  /// Opens the authenticator that is in a folder, and makes folder and file where they are not there.
  ///
  /// Throws `missing` without a folder above it, and what is wrong with it.
  package static func create(at path: String) throws(AuthenticatorFault) -> Authenticator {
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
