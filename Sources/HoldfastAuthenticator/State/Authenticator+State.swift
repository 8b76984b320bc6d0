import HoldfastCore
import HoldfastOpenSSL

extension Authenticator {
  private static let stateVersion: UInt64 = 1
  /// All records of a state string: 2^16 users would not fit it anyway.
  private static let maximumRecordCount = 8192

  /// The whole state as one line of ASCII, encrypted under a passphrase. The secrets in it are blinded as they are here.
  ///
  /// Throws `noRecords`, `busy`, `corrupt`, `failed`.
  package func exportState<Random: RandomSource & ~Copyable>(
    under passphrase: borrowing Passphrase, random: inout Random
  ) throws(AuthenticatorFault) -> String {
    try exportState(under: passphrase, cost: .archive, random: &random)
  }

  func exportState<Random: RandomSource & ~Copyable>(
    under passphrase: borrowing Passphrase, cost: ScryptCost, random: inout Random
  ) throws(AuthenticatorFault) -> String {
    let records = try tables.records()
    guard !records.isEmpty else { throw .noRecords }
    var plain: [UInt8] = []
    plain.appendCBOR(array: 2)
    plain.appendCBOR(unsigned: Self.stateVersion)
    plain.appendCBOR(array: records.count)
    for stored in records { stored.encode(into: &plain) }
    let state = SecretBytes(copying: plain.span)
    let line = try StateString.seal(state, under: passphrase, cost: cost, random: &random, using: &cryptography)
    return String(decoding: line, as: UTF8.self)
  }

  /// Throws `malformedState` unless `text` is a state string that was not mistyped. Needs no passphrase.
  package static func checkState(_ text: Span<UInt8>) throws(AuthenticatorFault) {
    try StateString.check(text)
  }

  /// Takes over the state in a string; returns how many records there are then.
  ///
  /// - Parameters:
  ///   - text: The line; white space in it is skipped.
  ///   - replacing: Whether records that are here already give way. A record that is in both keeps the later counters of
  ///     both: none goes back.
  /// - Throws: `malformedState` (also: a later version's), `wrongPassphrase`, `notEmpty` where there are records and `replacing` is false;
  ///   `busy`, `diskFull`, `failed`; `interrupted` when the old secrets are erased already: import it again.
  @discardableResult
  package func importState(
    _ text: Span<UInt8>, under passphrase: borrowing Passphrase, replacing: Bool = false
  ) throws(AuthenticatorFault) -> Int {
    let state = try StateString.open(text, under: passphrase, using: &cryptography)
    let imported = try Self.records(in: state.bytes)
    var replaced = try tables.records()
    guard replaced.isEmpty || replacing else { throw .notEmpty }
    // A secret that was blinded anew since then must not stand beside its older self: see `change`.
    replaced.removeAll { old in
      imported.contains { new in
        guard let old = old.secret, let new = new.secret else { return false }
        return old.isSame(as: new)
      }
    }
    let isErasing = replaced.contains { $0.secret != nil }
    if isErasing { try erase(&replaced, as: .importing) }
    do throws(AuthenticatorFault) {
      try tables.transaction { () throws(AuthenticatorFault) in
        let old = try tables.records()
        guard old.isEmpty || replacing else { throw .notEmpty }
        for stored in old { try tables.delete(stored.record.user, stored.record.index) }
        for stored in imported { try tables.save(stored.notBehind(old)) }
      }
    } catch {
      throw isErasing ? .interrupted : error
    }
    return imported.count
  }

  private static func records(in state: Span<UInt8>) throws(AuthenticatorFault) -> [StoredRecord] {
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
  /// The record with the later counters of itself and of the one in `others` with its user and index.
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

/// What a state string is encrypted under: at least 8 characters, and not digits alone, so that it is no PIN.
package struct Passphrase: ~Copyable, Sendable {
  let bytes: SecretBytes

  /// Takes UTF-8 as it is typed, 8 characters to 1,024 bytes. Throws `weakPassphrase`.
  package init(_ text: Span<UInt8>) throws(AuthenticatorFault) {
    var characterCount = 0
    var isNumber = true
    for index in text.indices {
      // What begins a character in UTF-8.
      if text[index] & 0xc0 != 0x80 { characterCount += 1 }
      if !(0x30...0x39).contains(text[index]) { isNumber = false }
    }
    guard characterCount >= 8, !isNumber, text.count <= 1024 else { throw .weakPassphrase }
    bytes = SecretBytes(copying: text)
  }

  /// Whether both are the same. Timing: tells nothing but whether they are.
  package func isSame(as other: borrowing Passphrase) -> Bool {
    constantTimeEqual(bytes.bytes, other.bytes.bytes)
  }
}
