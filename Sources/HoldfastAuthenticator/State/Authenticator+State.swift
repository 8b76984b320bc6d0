import HoldfastCore
import HoldfastOpenSSL

extension Authenticator {
  private static let stateVersion: UInt64 = 1
  /// The largest number of records in a state string, which has no room for 2^16 users anyway.
  private static let maximumRecordCount = 8192

  /// Returns the whole state as one line of ASCII, encrypted under a passphrase. The secrets in it remain blinded.
  ///
  /// - Throws: `noRecords`, `unknownEnd` if secrets wait that the device may have already, `busy`, `corrupt`, `failed`.
  package func exportState<Random: RandomSource & ~Copyable>(
    under passphrase: borrowing Passphrase, random: inout Random
  ) throws(AuthenticatorFault) -> String {
    try exportState(under: passphrase, cost: .archive, random: &random)
  }

  package func exportState<Random: RandomSource & ~Copyable>(
    under passphrase: borrowing Passphrase, cost: ScryptCost, random: inout Random
  ) throws(AuthenticatorFault) -> String {
    let records = try tables.records()
    guard !records.isEmpty else { throw .noRecords }
    guard try !hasReplacements(of: records) else { throw .unknownEnd }
    let state = SecretBytes(copying: Self.state(of: records).span)
    let line = try StateString.seal(state, under: passphrase, cost: cost, random: &random, using: &cryptography)
    return String(decoding: line, as: UTF8.self)
  }

  /// Checks that `text` is a state string without typing errors. No passphrase is needed.
  ///
  /// - Throws: `malformedState`.
  package static func checkState(_ text: Span<UInt8>) throws(AuthenticatorFault) {
    try StateString.check(text)
  }

  /// Imports the state in a string and returns the number of records afterwards.
  ///
  /// - Parameters:
  ///   - text: The line; white space in it is skipped.
  ///   - replacing: Whether existing records are replaced. A record that is in both keeps the later counters, so that
  ///     none goes back.
  /// - Throws: `malformedState`, also for a later version; `wrongPassphrase`; `notEmpty` if there are records and
  ///   `replacing` is false; `busy`, `diskFull`, `failed`; `interrupted` if the old secrets are already erased, in
  ///   which case the caller imports the state again.
  @discardableResult
  package func importState(
    _ text: Span<UInt8>, under passphrase: borrowing Passphrase, replacing: Bool = false
  ) throws(AuthenticatorFault) -> Int {
    let state = try StateString.open(text, under: passphrase, using: &cryptography)
    let imported = try Self.records(in: state.bytes)
    var replaced = try tables.records()
    guard replaced.isEmpty || replacing else { throw .notEmpty }
    // A secret that has been blinded again must not be stored next to its older form: see `change`.
    replaced.removeAll { old in
      imported.contains { new in
        guard let old = old.secret, let new = new.secret else { return false }
        return old.isSame(as: new)
      }
    }
    // Neither must it be stored next to what waits in this place.
    let isWaiting = try hasReplacements(of: try tables.records())
    if isWaiting {
      try tables.transaction { () throws(AuthenticatorFault) in try tables.deleteReplacements(of: nil) }
      try tables.eraseRemains()
    }
    let isErasing = replaced.contains { $0.secret != nil }
    if isErasing { try erase(&replaced, as: .importing) }
    do throws(AuthenticatorFault) {
      try tables.transaction { () throws(AuthenticatorFault) in
        let old = try tables.records()
        guard old.isEmpty || replacing else { throw .notEmpty }
        for stored in old { try tables.delete(stored.record.user, stored.record.index) }
        try tables.deleteReplacements(of: nil)
        for stored in imported { try tables.save(stored.notBehind(old)) }
      }
    } catch {
      throw isErasing || isWaiting ? .interrupted : error
    }
    return imported.count
  }

  private func hasReplacements(of records: [StoredRecord]) throws(AuthenticatorFault) -> Bool {
    for user in Set(records.map(\.record.user)) where try !tables.replacements(of: user).isEmpty { return true }
    return false
  }

  /// Writes the plaintext of a state string.
  package static func state(of records: [StoredRecord]) -> [UInt8] {
    var plain: [UInt8] = []
    plain.appendCBOR(array: 2)
    plain.appendCBOR(unsigned: Self.stateVersion)
    plain.appendCBOR(array: records.count)
    for stored in records { stored.encode(into: &plain) }
    return plain
  }

  /// Reads the plaintext of a state string.
  ///
  /// - Throws: `malformedState`, also for a later version.
  package static func records(in state: Span<UInt8>) throws(AuthenticatorFault) -> [StoredRecord] {
    do throws(EncodingFault) {
      var reader = CBORReader(state)
      try reader.array(of: 2)
      guard try reader.unsigned() == stateVersion else { throw .unexpected }
      let count = try reader.arrayHead()
      guard (1...maximumRecordCount).contains(count) else { throw .unexpected }
      var records: [StoredRecord] = []
      for _ in 0..<count { records.append(try StoredRecord(&reader)) }
      try reader.finish()
      return records
    } catch { throw .malformedState }
  }
}

extension StoredRecord {
  /// Returns the record with the later counters of itself and of the record in `others` with the same user and index.
  fileprivate func notBehind(_ others: [StoredRecord]) -> StoredRecord {
    var merged = self
    for other in others
    where other.record.index == record.index && other.record.user.utf8.elementsEqual(record.user.utf8) {
      merged.record.nextCounter = max(record.nextCounter, other.record.nextCounter)
      merged.record.acknowledgedCounter = max(record.acknowledgedCounter, other.record.acknowledgedCounter)
      if let step = other.record.lastTimeStep { merged.record.lastTimeStep = max(record.lastTimeStep ?? 0, step) }
    }
    return merged
  }
}

/// A passphrase that encrypts a state string. It has at least 8 characters, not all of them digits, so that it is not a
/// PIN.
package struct Passphrase: ~Copyable, Sendable {
  let bytes: SecretBytes

  /// Creates a passphrase from UTF-8 as the user types it, from 8 characters up to 1,024 bytes.
  ///
  /// - Throws: `weakPassphrase`.
  package init(_ text: Span<UInt8>) throws(AuthenticatorFault) {
    var characterCount = 0
    var isNumber = true
    for index in text.indices {
      // Each character has one byte that is not a UTF-8 continuation byte.
      if text[index] & 0xc0 != 0x80 { characterCount += 1 }
      if !(0x30...0x39).contains(text[index]) { isNumber = false }
    }
    guard characterCount >= 8, !isNumber, text.count <= 1024 else { throw .weakPassphrase }
    bytes = SecretBytes(copying: text)
  }

  /// Returns whether both passphrases are equal. Timing: reveals only the result.
  package func isSame(as other: borrowing Passphrase) -> Bool {
    constantTimeEqual(bytes.bytes, other.bytes.bytes)
  }
}
