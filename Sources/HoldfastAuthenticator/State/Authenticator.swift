import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// A user's authenticator: the secrets that the user shares with devices, and the codes and seals made from them.
///
/// Its state is kept in a folder (``AuthenticatorFolder``), or in a store of the app's own (``init(store:notBefore:)``). It
/// serves one thread at a time; other processes may use the same folder. Each change is one transaction, which is
/// durable before any result that depends on it is returned.
public final class Authenticator {
  package let tables: any RecordTables
  /// The scrypt cost of a new blinding by a PIN.
  let cost: ScryptCost
  var cryptography = OpenSSLCryptography()

  init(tables: any RecordTables, cost: ScryptCost) { (self.tables, self.cost) = (tables, cost) }

  package convenience init(path: String, cost: ScryptCost) throws(AuthenticatorFault) {
    self.init(tables: try AuthenticatorTables(path: path), cost: cost)
  }

  /// Returns all records, or those of one user, ordered by user and index.
  ///
  /// - Throws: `busy`, `corrupt`, `failed`.
  public func records(user: String? = nil) throws(AuthenticatorFault) -> [Record] {
    try tables.records(of: user).map(\.record)
  }

  /// Returns the names of the users who have records, each once, in the order of their bytes.
  ///
  /// - Throws: `busy`, `corrupt`, `failed`.
  public func users() throws(AuthenticatorFault) -> [String] {
    var users: [String] = []
    for record in try records() where users.last?.utf8.elementsEqual(record.user.utf8) != true {
      users.append(record.user)
    }
    return users
  }

  /// Returns the devices with which a user shares secrets, or any user, in the order of the records.
  ///
  /// - Throws: `busy`, `corrupt`, `failed`.
  public func devices(of user: String? = nil) throws(AuthenticatorFault) -> [DeviceID] {
    var devices: [DeviceID] = []
    for case let device? in try records(user: user).map(\.deviceID) where !devices.contains(device) {
      devices.append(device)
    }
    return devices
  }

  /// Returns the record with a purpose, and with a user and index if these are given.
  ///
  /// - Throws: `noRecords` if there is none at all, `unknownRecord`, and `severalUsers` or `severalRecords` if the
  ///   caller must choose; `busy`, `corrupt`, `failed`.
  public func record(
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

  /// Reads a record again in the transaction that changes it.
  ///
  /// - Throws: the errors of ``stored(_:)``, and `busy` if its secret is no longer `secret`.
  func current(_ record: Record, with secret: BlindedSecret) throws(AuthenticatorFault) -> StoredRecord {
    let stored = try stored(record)
    guard let now = stored.secret, now.isSame(as: secret) else { throw .busy }
    return stored
  }

  /// Reads a record that the caller was given earlier.
  ///
  /// - Throws: `unknownRecord` if it was removed meanwhile, and `busy` if one with another purpose or method replaced it.
  func stored(_ record: Record) throws(AuthenticatorFault) -> StoredRecord {
    let stored = try stored(record.user, record.index)
    guard stored.record.purpose == record.purpose, stored.record.method == record.method else { throw .busy }
    return stored
  }

  package func stored(_ user: String, _ index: Int) throws(AuthenticatorFault) -> StoredRecord {
    guard let stored = try tables.record(user, index) else { throw .unknownRecord }
    return stored
  }
}

/// The folder of a user's authenticator. Its mode is 0700, that of the file in it 0600.
public enum AuthenticatorFolder {
  /// The name of the database file in the folder.
  package static let fileName = "authenticator.sqlite"

  /// Opens the authenticator in a folder.
  ///
  /// - Throws: `missing` if there is none, `folder` if the folder is of another kind, and the errors of the file: `tooOpen`,
  ///   `corrupt`, `foreign`, `newerVersion`, `busy`, `readOnly`, `diskFull`, `failed`.
  public static func open(at path: String) throws(AuthenticatorFault) -> Authenticator {
    try open(at: path, cost: .interactive)
  }

  /// Opens the authenticator in a folder, after creating the folder and the file if necessary.
  ///
  /// - Throws: `folder` with the fault of the folder or its parent, also if it is of another kind, and the errors of the file
  ///   as ``open(at:)`` does. A call that was interrupted can be repeated.
  public static func create(at path: String) throws(AuthenticatorFault) -> Authenticator {
    try create(at: path, cost: .interactive)
  }

  /// Opens the authenticator; `cost` applies to new protections.
  package static func open(at path: String, cost: ScryptCost) throws(AuthenticatorFault) -> Authenticator {
    do throws(FileError) {
      try Files.requirePrivateFolder(at: path)
      try FolderKind.authenticator.require(ofFolder: path)
    } catch { throw .folder(error) }
    var status = stat()
    // An empty file is accepted: its creation was interrupted.
    guard unsafe lstat(path + "/" + fileName, &status) == 0 else {
      guard errno != ENOENT else { throw .missing }
      throw .folder(FileError(SystemError.last, at: path + "/" + fileName))
    }
    return try Authenticator(path: path + "/" + fileName, cost: cost)
  }

  package static func create(at path: String, cost: ScryptCost) throws(AuthenticatorFault) -> Authenticator {
    do throws(FileError) {
      try Files.createPrivateDirectory(at: path, isBackedUp: false)
      try FolderKind.authenticator.require(ofFolder: path)
    } catch { throw .folder(error) }
    return try Authenticator(path: path + "/" + fileName, cost: cost)
  }
}
