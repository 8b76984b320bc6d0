import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

/// The owner's key for policies in the ledger, and the number below which no policy counts.
extension Ledger {
  /// Returns the key for policies with the newest policy; nil if policies need no signature.
  ///
  /// - Throws: `busy`, `failed`.
  package func policyTrust() throws(LedgerFault) -> PolicyTrust? {
    try look { (tables) throws(DatabaseError) in try tables.policyTrust() }
  }

  /// Sets the key for policies, or removes it. With another key, numbers begin anew. Returns whether anything changed.
  /// `realClock` is in Unix seconds.
  ///
  /// No server may have the device, because it knows only the key with which it opened the device.
  func setPolicyKey(_ key: P256Point?, realClock: UInt64?) throws(LedgerError) -> Bool {
    try write { (tables, state) throws(DatabaseError) in
      guard try tables.policyTrust()?.key != key else { return false }
      try tables.set(key, time: state.time(realClock: realClock), to: &state)
      return true
    }
  }

  /// Durably records a policy as the newest one.
  ///
  /// - Throws: `outdated`; `anotherKey` if the key was changed meanwhile; `unrecorded` if the ledger cannot be read or written.
  func take(_ policy: SignedPolicy) throws(PolicyFault) {
    let trust: PolicyTrust?
    do throws(LedgerFault) { trust = try policyTrust() } catch { throw .unrecorded }
    guard let trust else { throw .anotherKey }
    // The newest policy is already recorded.
    if trust.number == policy.number { return try trust.check(policy) }
    try take(policy) { nil }
  }

  /// Durably records a policy as the newest one, after `publish` has made it the device's policy file. Other processes wait
  /// meanwhile, so that the file of the newest policy stays.
  ///
  /// - Parameter publish: Returns the fault that prevents it.
  /// - Throws: the errors of ``take(_:)``, and the fault of `publish`.
  func take(_ policy: SignedPolicy, publish: () -> PolicyFault?) throws(PolicyFault) {
    let fault: PolicyFault?
    do throws(LedgerError) {
      fault = try write(isKept: { $0 == nil }) { (tables, _) throws(DatabaseError) -> PolicyFault? in
        guard var trust = try tables.policyTrust() else { return .anotherKey }
        do throws(PolicyFault) { try trust.check(policy) } catch { return error }
        if let fault = publish() { return fault }
        (trust.number, trust.digest) = (policy.number, policy.digest)
        try tables.save(trust)
        return nil
      }
    } catch { throw .unrecorded }
    if let fault { throw fault }
  }
}

/// The SQL of the key for policies. Without a row, policies need no signature.
extension LedgerTables {
  static let policyKeySchema: StaticString = """
    CREATE TABLE policy_key (
      id INTEGER PRIMARY KEY CHECK (id = 1), point BLOB NOT NULL, number INTEGER NOT NULL, digest BLOB) STRICT;
    """

  package func policyTrust() throws(DatabaseError) -> PolicyTrust? {
    try database.one("SELECT point, number, digest FROM policy_key") { (row) throws(DatabaseError) in
      var trust = PolicyTrust(key: try row.fixedBytes(0))
      trust.number = try row.unsigned(1)
      if try !row.isNull(2) { trust.digest = try row.fixedBytes(2) }
      return trust
    }
  }

  /// Sets the key for policies, before its first policy, or removes it.
  func set(_ key: P256Point?, time: UInt64, to state: inout LedgerState) throws(DatabaseError) {
    var keyID: KeyID?
    if let key {
      var cryptography = OpenSSLCryptography()
      do throws(CryptographyFailure) { keyID = try HoldfastCore.keyID(of: key, using: &cryptography) } catch {
        throw .misuse
      }
      try save(PolicyTrust(key: key))
    } else {
      try database.run("DELETE FROM policy_key")
    }
    try append(.policyKeySet(keyID), time: time, to: &state)
  }

  func save(_ trust: PolicyTrust) throws(DatabaseError) {
    try database.run(
      "INSERT OR REPLACE INTO policy_key VALUES (1, ?, ?, ?)", .copying(trust.key.bytes), .unsigned(trust.number),
      trust.digest.map { .copying($0.bytes) } ?? .null)
  }
}
