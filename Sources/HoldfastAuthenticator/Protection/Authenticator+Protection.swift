import HoldfastCore
import HoldfastOpenSSL

/// Changing a PIN without the device.
///
/// Nobody can tell a mistyped old PIN from the right one, and with it the secret would be lost; so the old blinded secret is
/// kept. But never beside the new one, under nothing but the PINs: of all pairs of PINs only one makes the same secret of
/// both, so whoever had both could find it. Hence the undo code, and hence three steps, each on the disk before the next: a
/// copy under the undo code is stored; the old blinded secret is erased, in the file and in its log; the new one is stored.
extension Authenticator {
  /// The first step: stores copies under an undo code, which is to be shown before the second step.
  ///
  /// It takes all records of the user that share the PIN, or the key, with `record`. Throws `changeOpen` while the change
  /// before is neither confirmed nor undone, `interrupted`, `unknownRecord`; `busy`, `diskFull`, `failed`.
  package func prepareChange<Random: RandomSource & ~Copyable>(
    of record: Record, random: inout Random
  ) throws(AuthenticatorFault) -> UndoCode {
    let code = try UndoCode(random: &random)
    try tables.transaction { () throws(AuthenticatorFault) in
      for var stored in try sharing(record) {
        if stored.record.change == .open { throw .changeOpen }
        let secret = try stored.usableSecret()
        stored.undo = try UndoCopy.make(
          of: secret, for: stored.record, under: code, random: &random, using: &cryptography)
        stored.record.change = .prepared
        try tables.save(stored)
      }
    }
    return code
  }

  /// The other steps: blinds the secrets anew.
  ///
  /// - Parameters:
  ///   - record: As given to ``prepareChange(of:random:)``.
  ///   - old: What the secrets are blinded by. A wrong PIN is not noticed: see ``undoChange(user:under:)``.
  ///   - new: A PIN that meets the rules, a key, or nothing.
  ///   - code: What the first step returned.
  /// - Throws: `weakPIN`, `protectionMismatch`, `wrongUndoCode`, `noChange` without the first step; `busy`, `diskFull`,
  ///   `failed`, after which all is as it was before; `interrupted` when the old secrets are erased already: the undo code
  ///   brings them back.
  package func change<Random: RandomSource & ~Copyable>(
    _ record: Record, from old: borrowing ProtectionSecret, to new: borrowing ProtectionSecret,
    under code: borrowing UndoCode, random: inout Random
  ) throws(AuthenticatorFault) {
    if let fault = new.ruleFault { throw .weakPIN(fault) }
    var before = try sharing(record)
    var after: [StoredRecord] = []
    for stored in before {
      guard stored.record.change == .prepared, let undo = stored.undo else { throw .noChange }
      let secret = try stored.usableSecret()
      guard let copy = UndoCopy.open(undo, for: stored.record, under: code, using: &cryptography),
        copy.isSame(as: secret)
      else { throw .wrongUndoCode }
      let plain = try secret.unblinded(with: old)
      let protection = try Protection.fresh(new.kind, cost: cost, random: &random)
      var changed = stored
      changed.secret = try BlindedSecret(blinding: plain, with: new, as: protection)
      changed.record.protection = new.kind
      changed.record.change = .open
      changed.record.changePosition = stored.record.freshPosition
      after.append(changed)
    }
    try erase(&before, as: .erased)
    try replace(after)
  }

  /// Goes back to before the last change, with the code that was shown then.
  ///
  /// Throws `noChange`, `wrongUndoCode`; `busy`, `diskFull`, `failed`, after which it can be done again.
  package func undoChange(user: String, under code: borrowing UndoCode) throws(AuthenticatorFault) {
    var changed: [StoredRecord] = []
    var restored: [StoredRecord] = []
    for stored in try tables.records(of: user) {
      guard let undo = stored.undo else { continue }
      changed.append(stored)
      guard let secret = UndoCopy.open(undo, for: stored.record, under: code, using: &cryptography) else { continue }
      var old = stored
      (old.secret, old.undo) = (secret, nil)
      (old.record.protection, old.record.change) = (secret.protection.kind, .none)
      old.record.changePosition = nil
      restored.append(old)
    }
    guard !changed.isEmpty else { throw .noChange }
    guard !restored.isEmpty else { throw .wrongUndoCode }
    changed.removeAll { changed in !restored.contains { $0.record.index == changed.record.index } }
    try erase(&changed, as: .erased)
    try replace(restored)
  }

  /// Drops the copies from before the last change: a code under the new PIN was accepted, or the user is sure of it.
  ///
  /// - Parameters:
  ///   - index: The record whose code it was; those that share its PIN are confirmed with it. Nil for all of the user's.
  /// - Returns: Whether there was anything to confirm.
  /// - Throws: `unknownRecord`, `interrupted`; `busy`, `diskFull`, `failed`.
  @discardableResult
  package func confirmProtection(user: String, index: Int? = nil) throws(AuthenticatorFault) -> Bool {
    let hasConfirmed = try tables.transaction { () throws(AuthenticatorFault) in
      let all = try tables.records(of: user)
      guard !all.isEmpty else { throw .unknownRecord }
      let group = try index.map { (index) throws(AuthenticatorFault) in try stored(user, index).record.protectionGroup }
      var hasConfirmed = false
      for var stored in all
      where stored.undo != nil && (group ?? stored.record.protectionGroup) == stored.record.protectionGroup {
        guard stored.secret != nil else { throw .interrupted }
        (stored.undo, stored.record.change, stored.record.changePosition) = (nil, .none, nil)
        try tables.save(stored)
        hasConfirmed = true
      }
      return hasConfirmed
    }
    if hasConfirmed { try tables.settle() }
    return hasConfirmed
  }

  /// The records of `record`'s user that share its protection.
  private func sharing(_ record: Record) throws(AuthenticatorFault) -> [StoredRecord] {
    let group = try stored(record.user, record.index).record.protectionGroup
    let sharing = try tables.records(of: record.user).filter {
      $0.record.protectionGroup == group && $0.record.purpose != .host
    }
    guard !sharing.isEmpty else { throw .unknownRecord }
    return sharing
  }

  /// Erases the secrets of `records`, as they are in the file and its log; puts them back where that fails.
  ///
  /// Throws `busy` when a record has changed meanwhile.
  func erase(_ records: inout [StoredRecord], as progress: ChangeProgress) throws(AuthenticatorFault) {
    let erasable = records.filter { $0.secret != nil }
    try tables.transaction { () throws(AuthenticatorFault) in
      for before in erasable {
        guard let secret = before.secret else { continue }
        var stored = try current(before.record, with: secret)
        stored.secret = nil
        stored.record.change = progress
        try tables.save(stored)
      }
    }
    do throws(AuthenticatorFault) { try tables.settle() } catch {
      let cause = error
      do throws(AuthenticatorFault) { try putBack(erasable) } catch { throw .interrupted }
      throw cause
    }
  }

  /// Takes an erasure back: only what was there before is written.
  private func putBack(_ records: [StoredRecord]) throws(AuthenticatorFault) {
    try tables.transaction { () throws(AuthenticatorFault) in
      for before in records {
        var stored = try stored(before.record.user, before.record.index)
        guard stored.secret == nil else { throw .busy }
        stored.secret = before.secret
        stored.record.change = before.record.change
        try tables.save(stored)
      }
    }
  }

  /// Stores the secrets of `records` in the place of erased ones. Counters are those in the file.
  private func replace(_ records: [StoredRecord]) throws(AuthenticatorFault) {
    do throws(AuthenticatorFault) {
      try tables.transaction { () throws(AuthenticatorFault) in
        for after in records {
          var stored = try stored(after.record.user, after.record.index)
          guard stored.secret == nil else { throw .busy }
          (stored.secret, stored.undo) = (after.secret, after.undo)
          (stored.record.protection, stored.record.change) = (after.record.protection, after.record.change)
          stored.record.changePosition = after.record.changePosition
          try tables.save(stored)
        }
      }
    } catch {
      throw .interrupted
    }
  }
}
