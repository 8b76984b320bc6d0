import HoldfastCore
import HoldfastOpenSSL

/// The change of a PIN without the device.
///
/// A mistyped old PIN cannot be distinguished from the right one, and it would destroy the secret. Therefore the old
/// blinded secret is kept. It must not be stored next to the new one with only the PINs to protect both: of all pairs
/// of PINs, only one unblinds both to the same secret, so anyone who had both could find that pair. Hence the undo code
/// and three steps, each on the disk before the next: a copy under the undo code is stored; the old blinded secret is
/// erased from the file and its log; the new one is stored.
extension Authenticator {
  /// Stores copies of the secrets under an undo code: the first step. The caller shows the code before the second step.
  ///
  /// The change covers all records of the user that share the PIN or key with `record`.
  ///
  /// - Throws: `changeOpen` while the previous change is neither confirmed nor undone, `interrupted`, `unknownRecord`;
  ///   `busy`, `diskFull`, `failed`.
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

  /// Blinds the secrets again: the second and third steps.
  ///
  /// - Parameters:
  ///   - record: The record given to ``prepareChange(of:random:)``.
  ///   - old: The inputs whose masks are taken off. A wrong PIN or key is not detected: see
  ///     ``undoChange(user:under:)``.
  ///   - new: The inputs whose masks are put on; a PIN meets the rules. Masks of other inputs stay as they are. If the
  ///     mask of a PIN comes or goes, none may stay: `old` has all inputs, and `new` repeats those that stay. Otherwise
  ///     the PIN could be tested by an older copy of the file, as the two copies would differ only in masks of PINs.
  ///   - code: The undo code that the first step returned.
  /// - Throws: `weakPIN`, `protectionMismatch`, `otherHost`, `wrongUndoCode`, `noChange` without the first step; `busy`, `diskFull`
  ///   or `failed`, after which the state is as before; `interrupted` if the old secrets are already erased: the undo
  ///   code restores them.
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
      let inputs = secret.protection.inputs
      guard !old.inputs.union(new.inputs).contains(.pin) || old.inputs == inputs else {
        throw .protectionMismatch(inputs)
      }
      try stored.record.refuseBelowDemand(from: old, to: new)
      let exchanged = try secret.exchanging(old, for: new, cost: cost, random: &random)
      var changed = stored
      changed.secret = exchanged
      changed.record.protection = exchanged.protection.inputs
      changed.record.change = .open
      changed.record.changePosition = stored.record.freshPosition
      after.append(changed)
    }
    try erase(&before, as: .erased)
    try replace(after)
  }

  /// Checks that a change keeps to what the device's owner demands, before the undo code is shown.
  ///
  /// - Throws: `demanded`; `unknownRecord`, `busy`, `failed`.
  package func checkChange(
    of record: Record, from old: borrowing ProtectionSecret, to new: borrowing ProtectionSecret
  ) throws(AuthenticatorFault) {
    for stored in try sharing(record) { try stored.record.refuseBelowDemand(from: old, to: new) }
  }

  /// Restores the secrets from before the last change with the undo code that was shown then.
  ///
  /// - Throws: `noChange`, `wrongUndoCode`; `busy`, `diskFull` or `failed`, after which the caller may try again.
  package func undoChange(user: String, under code: borrowing UndoCode) throws(AuthenticatorFault) {
    var changed: [StoredRecord] = []
    var restored: [StoredRecord] = []
    for stored in try tables.records(of: user) {
      guard let undo = stored.undo else { continue }
      changed.append(stored)
      guard let secret = UndoCopy.open(undo, for: stored.record, under: code, using: &cryptography) else { continue }
      var old = stored
      (old.secret, old.undo) = (secret, nil)
      (old.record.protection, old.record.change) = (secret.protection.inputs, .none)
      old.record.changePosition = nil
      restored.append(old)
    }
    guard !changed.isEmpty else { throw .noChange }
    guard !restored.isEmpty else { throw .wrongUndoCode }
    changed.removeAll { changed in !restored.contains { $0.record.index == changed.record.index } }
    try erase(&changed, as: .erased)
    try replace(restored)
  }

  /// Deletes the copies from before the last change, because the device accepted a code under the new PIN or the user
  /// is sure of it.
  ///
  /// - Parameters:
  ///   - index: The record whose code was accepted; the records that share its PIN are confirmed with it. Nil confirms
  ///     all records of the user.
  /// - Returns: Whether there was a change to confirm.
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
    if hasConfirmed { try tables.eraseRemains() }
    return hasConfirmed
  }

  /// Returns the records of the same user that share their protection with `record`.
  private func sharing(_ record: Record) throws(AuthenticatorFault) -> [StoredRecord] {
    let group = try stored(record.user, record.index).record.protectionGroup
    let sharing = try tables.records(of: record.user).filter {
      $0.record.protectionGroup == group && $0.record.purpose != .host
    }
    guard !sharing.isEmpty else { throw .unknownRecord }
    return sharing
  }

  /// Erases the secrets of `records` from the file and its log. If that fails, puts them back.
  ///
  /// - Throws: `busy` if a record has changed meanwhile, `interrupted` if the secrets cannot be put back.
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
    do throws(AuthenticatorFault) { try tables.eraseRemains() } catch {
      let cause = error
      do throws(AuthenticatorFault) { try putBack(erasable) } catch { throw .interrupted }
      throw cause
    }
  }

  /// Undoes an erasure. It restores only the secrets and the progress of the change.
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

  /// Stores the secrets of `records` in place of the erased ones. The counters in the file are kept.
  ///
  /// - Throws: `interrupted` for any failure.
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

extension Record {
  /// Checks that the record still meets the owner's demand when `new` has replaced `old`.
  ///
  /// - Throws: `demanded`.
  fileprivate func refuseBelowDemand(
    from old: borrowing ProtectionSecret, to new: borrowing ProtectionSecret
  ) throws(AuthenticatorFault) {
    guard let demand else { return }
    let inputs = protection.subtracting(old.inputs).union(new.inputs)
    guard demand.isMet(by: inputs, pinLength: new.pinLength) else { throw .demanded(demand) }
  }
}
