import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

/// A user's authenticator: the secrets that he shares with devices, and the codes and seals that they make.
///
/// For one thread at a time; other processes may use the same folder. Whatever changes is one transaction, durable before
/// anything that rests on it is returned.
public final class Authenticator {
  let tables: AuthenticatorTables
  /// What a new blinding by a PIN costs.
  let cost: ScryptCost
  var cryptography = OpenSSLCryptography()

  init(path: String, cost: ScryptCost) throws(AuthenticatorFault) {
    tables = try AuthenticatorTables(path: path)
    self.cost = cost
  }

  /// All records, or a user's, by user and index. Throws `busy`, `corrupt`, `failed`.
  public func records(user: String? = nil) throws(AuthenticatorFault) -> [Record] {
    try tables.records(of: user).map(\.record)
  }

  /// The record of a purpose, of a user and index where these are given.
  ///
  /// Throws `noRecords` when there is none at all, `unknownRecord`, and `severalUsers` or `severalRecords` where it has to be
  /// said which one.
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
