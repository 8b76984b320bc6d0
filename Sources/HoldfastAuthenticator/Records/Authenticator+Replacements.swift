import HoldfastCore

/// New secrets of a user who has confirmed records. The records stay in use until the device has confirmed the new secrets;
/// until then, these wait next to them.
///
/// Both are random and independent of each other, so that they tell nothing about a PIN together.
extension Authenticator {
  /// Stores the records of an activation: unconfirmed if no confirmed record has their place, and otherwise as replacements,
  /// which wait. Replacements of the user that wait already are dropped.
  ///
  /// - Parameters:
  ///   - records: The new records of one user.
  ///   - protector: A PIN that meets the rules, a key, or nothing.
  ///   - replacing: Whether confirmed records may be replaced.
  /// - Returns: Whether the records wait as replacements.
  /// - Throws: `exists`, and the errors of ``add(_:protection:isConfirmed:replacing:random:)``.
  package func store<Random: RandomSource & ~Copyable>(
    _ records: [NewRecord], protection protector: borrowing ProtectionSecret, replacing: Bool, random: inout Random
  ) throws(AuthenticatorFault) -> Bool {
    let known = try tables.records().map(\.record)
    let isReplacing = records.contains { new in known.contains { $0.isConfirmed && new.replaces($0) } }
    guard isReplacing else {
      try add(records, protection: protector, isConfirmed: false, replacing: replacing, random: &random)
      return false
    }
    guard replacing else { throw .exists }
    let secrets = try blinded(records, with: protector, random: &random)
    let group = (known.map(\.protectionGroup).max() ?? 0) + 1
    try tables.transaction { () throws(AuthenticatorFault) in
      for user in Set(records.map(\.credential.user)) { try tables.deleteReplacements(of: user) }
      for (record, secret) in zip(records, secrets) {
        let stored = Record(record, protection: secret.protection.inputs, group: group, isConfirmed: false)
        try tables.saveReplacement(StoredRecord(record: stored, secret: secret))
      }
    }
    return true
  }

  /// Returns the records of a user that wait for a device to confirm them, without their secrets.
  ///
  /// - Throws: `busy`, `corrupt`, `failed`.
  public func waitingRecords(of user: String) throws(AuthenticatorFault) -> [Record] {
    try tables.replacements(of: user).map(\.record)
  }

  /// Puts the records that wait in place of those of the same user and index, because the device has confirmed them, and erases
  /// the old secrets from the disk. Returns whether any waited.
  ///
  /// - Throws: `busy`, `corrupt`, `diskFull`, `failed`. After a power cut, either the old records are complete or the new ones.
  @discardableResult
  package func completeReplacement(of user: String, deviceID: DeviceID) throws(AuthenticatorFault) -> Bool {
    let isCompleted = try tables.transaction { () throws(AuthenticatorFault) in
      let waiting = try tables.replacements(of: user).filter { $0.record.isOf(deviceID) }
      let group = try (tables.records().map(\.record.protectionGroup).max() ?? 0) + 1
      for var stored in waiting {
        stored.record = Record(stored.record, group: group, isConfirmed: true)
        try tables.save(stored)
      }
      try tables.deleteReplacements(of: user)
      return !waiting.isEmpty
    }
    if isCompleted { try tables.eraseRemains() }
    return isCompleted
  }

  /// Applies the difference of a device's clock, in seconds, to the records of a user that wait, at a time in Unix seconds.
  package func synchroniseWaiting(user: String, offsetSeconds: Int64?, now: UInt64) throws(AuthenticatorFault) {
    guard Record.clockOffsetBounds.contains(offsetSeconds ?? 0), now <= maximumInteger else { throw .badRecord }
    try tables.transaction { () throws(AuthenticatorFault) in
      for var stored in try tables.replacements(of: user) where stored.record.purpose != .host {
        if let offsetSeconds, stored.record.method.timeStepSeconds != nil {
          stored.record.clockOffsetSeconds = offsetSeconds
        }
        stored.record.lastSynchronised = now
        try tables.saveReplacement(stored)
      }
    }
  }

  /// Returns whether a device's host code over both challenges shows that it has the secrets of a user that wait.
  package func isOfWaitingRecords(
    _ code: String, user: String, device: DeviceID, challenge: DeviceChallenge, deviceChallenge: DeviceChallenge
  ) throws(AuthenticatorFault) -> Bool {
    let host = try tables.replacements(of: user).first { $0.record.purpose == .host && $0.record.isOf(device) }
    guard let host, let secret = host.secret else { return false }
    do throws(AuthenticatorFault) {
      let (given, suite) = try host.record.hostCode(code)
      return try isHostCode(given, of: suite, secret, over: challenge.digits + deviceChallenge.digits)
    } catch {
      // A device can send any text, even one that is not a code; it counts as a wrong answer.
      guard error == .badQuestion else { throw error }
      return false
    }
  }
}

extension Record {
  fileprivate init(_ other: Record, group: UInt64, isConfirmed: Bool) {
    self.init(
      user: other.user, index: other.index, purpose: other.purpose, issuer: other.issuer, deviceID: other.deviceID,
      method: other.method, nextCounter: other.nextCounter, acknowledgedCounter: other.acknowledgedCounter,
      clockOffsetSeconds: other.clockOffsetSeconds, lastTimeStep: other.lastTimeStep,
      lastSynchronised: other.lastSynchronised, lookAheadWindow: other.lookAheadWindow,
      sealFieldByteLimit: other.sealFieldByteLimit, protection: other.protection, protectionGroup: group,
      isConfirmed: isConfirmed, change: .none, demand: other.demand)
  }
}
