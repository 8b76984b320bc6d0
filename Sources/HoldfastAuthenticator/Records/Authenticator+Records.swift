import HoldfastCore
import HoldfastOpenSSL

extension Authenticator {
  /// Stores records under one protection, either all or none. A record of purpose `host` is always stored unprotected.
  ///
  /// - Parameters:
  ///   - records: The new records, each with a different user or index.
  ///   - protector: A PIN that meets the rules, a key, or nothing.
  ///   - isConfirmed: Whether the device already has the secrets. Otherwise ``confirmActivation(user:deviceID:)``
  ///     confirms the records later. Unconfirmed records may be replaced.
  ///   - replacing: Whether confirmed records with the same user and index are replaced as well.
  /// - Throws: `secretTwice`, `exists`, `badUser`, `badIndex`, `badRecord`, `unsuitableMethod`, `weakPIN`, `demanded`; `busy`,
  ///   `diskFull`, `failed`.
  package func add<Random: RandomSource & ~Copyable>(
    _ records: [NewRecord], protection protector: borrowing ProtectionSecret, isConfirmed: Bool = true,
    replacing: Bool = false, random: inout Random
  ) throws(AuthenticatorFault) {
    let secrets = try blinded(records, with: protector, random: &random)
    try tables.transaction { () throws(AuthenticatorFault) in
      let group = try (tables.records().map(\.record.protectionGroup).max() ?? 0) + 1
      for (record, secret) in zip(records, secrets) {
        if let old = try tables.record(record.credential.user, record.index) {
          guard replacing || !old.record.isConfirmed else { throw .exists }
        }
        let stored = Record(record, protection: secret.protection.inputs, group: group, isConfirmed: isConfirmed)
        try tables.save(StoredRecord(record: stored, secret: secret))
      }
    }
  }

  /// Checks new records, and returns their secrets blinded.
  func blinded<Random: RandomSource & ~Copyable>(
    _ records: [NewRecord], with protector: borrowing ProtectionSecret, random: inout Random
  ) throws(AuthenticatorFault) -> [BlindedSecret] {
    for record in records {
      guard let demand = record.demand else { continue }
      guard demand.isMet(by: protector.inputs, pinLength: protector.pinLength) else { throw .demanded(demand) }
    }
    if let fault = protector.ruleFault { throw .weakPIN(fault) }
    for record in records { try record.check() }
    try refuseSecretsTwice(records, protector)
    var secrets: [BlindedSecret] = []
    let nothing = ProtectionSecret.none
    for record in records {
      if record.purpose == .host {
        secrets.append(try BlindedSecret(blinding: record.credential.secret, with: nothing, as: .none))
      } else {
        let protection = try Protection.fresh(for: protector, cost: cost, random: &random)
        secrets.append(try BlindedSecret(blinding: record.credential.secret, with: protector, as: protection))
      }
    }
    return secrets
  }

  /// Records that a device has the secrets of a user's unconfirmed records. A nil `deviceID` matches every device.
  ///
  /// - Throws: `unknownRecord` if no record of the user belongs to that device or to an unknown one.
  package func confirmActivation(user: String, deviceID: DeviceID? = nil) throws(AuthenticatorFault) {
    try tables.transaction { () throws(AuthenticatorFault) in
      let all = try tables.records(of: user).filter { $0.record.isOf(deviceID) }
      guard !all.isEmpty else { throw .unknownRecord }
      for var stored in all where !stored.record.isConfirmed {
        stored.record.isConfirmed = true
        try tables.save(stored)
      }
    }
  }

  /// Removes a user's records, or only the one with `index`, and erases them from the disk. Returns the number of
  /// records removed.
  ///
  /// - Throws: `unknownRecord` if there is none.
  @discardableResult
  package func remove(user: String, index: Int? = nil) throws(AuthenticatorFault) -> Int {
    let count = try tables.transaction { () throws(AuthenticatorFault) in
      let removed = try tables.records(of: user).filter { (index ?? $0.record.index) == $0.record.index }
      for stored in removed { try tables.delete(user, stored.record.index) }
      try tables.deleteReplacements(of: user, index: index)
      return removed.count
    }
    guard count > 0 else { throw .unknownRecord }
    try tables.eraseRemains()
    return count
  }

  /// Returns the lowest index that no record of the user has, nor one of `planned`, which are to be added.
  ///
  /// - Throws: `exists` if all eight are in use.
  package func freeIndex(user: String, besides planned: [NewRecord] = []) throws(AuthenticatorFault) -> Int {
    let ofUser = planned.filter { $0.credential.user.utf8.elementsEqual(user.utf8) }
    let taken = try records(user: user).map(\.index) + ofUser.map(\.index)
    guard let free = Record.indices.first(where: { !taken.contains($0) }) else { throw .exists }
    return free
  }

  /// Applies the values that a device sent about a user in a sealed verdict. Counters never go back. If the device has
  /// accepted a code that this copy of the folder showed after a change of PIN, the change is confirmed.
  ///
  /// - Parameters:
  ///   - deviceID: The device that sent the values. Records of other devices remain unchanged. Nil applies the values to
  ///     all records of the user.
  ///   - offsetSeconds: The difference of the device's clock from this one, positive if it is ahead; nil if the device
  ///     did not send it. Its magnitude is at most 2^32 - 1.
  ///   - otpNext: The first counter or time step that the device would accept in a one-time password.
  ///   - sealNext: The first counter or time step that the device would accept in a seal.
  ///   - now: The current time, in Unix seconds.
  /// - Throws: `unknownRecord` if no record of the user belongs to that device or to an unknown one, `badRecord` for a
  ///   value out of range.
  package func synchronise(
    user: String, deviceID: DeviceID? = nil, offsetSeconds: Int64?, otpNext: UInt64?, sealNext: UInt64?, now: UInt64
  ) throws(AuthenticatorFault) {
    guard Record.clockOffsetBounds.contains(offsetSeconds ?? 0),
      max(otpNext ?? 0, sealNext ?? 0, now) <= maximumInteger
    else { throw .badRecord }
    let accepted = try tables.transaction { () throws(AuthenticatorFault) in
      let all = try tables.records(of: user).filter { $0.record.isOf(deviceID) }
      guard !all.isEmpty else { throw .unknownRecord }
      var accepted: [Int] = []
      for var stored in all where stored.record.purpose != .host {
        let next = stored.record.purpose == .otp ? otpNext : sealNext
        if stored.record.change == .open, let next, let first = stored.record.changePosition {
          if next > stored.record.freshPosition {
            // Another copy of the folder has shown that code, perhaps under the old PIN: only later ones tell anything.
            stored.record.changePosition = max(first, next)
          } else if next > first {
            accepted.append(stored.record.index)
          }
        }
        if let next, stored.record.method.isCounted {
          stored.record.acknowledgedCounter = max(stored.record.acknowledgedCounter, next)
          stored.record.nextCounter = max(stored.record.nextCounter, next)
        }
        if let offsetSeconds, stored.record.method.timeStepSeconds != nil {
          stored.record.clockOffsetSeconds = offsetSeconds
        }
        stored.record.lastSynchronised = now
        try tables.save(stored)
      }
      return accepted
    }
    for index in accepted { try confirmProtection(user: user, index: index) }
  }
}

extension Record {
  init(_ new: NewRecord, protection: ProtectionInputs, group: UInt64, isConfirmed: Bool) {
    self.init(
      user: new.credential.user, index: new.index, purpose: new.purpose, issuer: new.credential.issuer,
      deviceID: new.deviceID, method: new.credential.method, nextCounter: new.credential.nextCounter,
      acknowledgedCounter: new.credential.nextCounter, clockOffsetSeconds: 0, lookAheadWindow: new.lookAheadWindow,
      sealFieldByteLimit: new.sealFieldByteLimit, protection: protection, protectionGroup: group,
      isConfirmed: isConfirmed, change: .none, demand: new.demand)
  }

  /// Returns whether the values of `device` apply to the record: either of the two is nil, or they are equal.
  package func isOf(_ device: DeviceID?) -> Bool {
    guard let device, let deviceID else { return true }
    return deviceID == device
  }
}

extension NewRecord {
  /// Checks that the record can be stored and used.
  fileprivate func check() throws(AuthenticatorFault) {
    let user = credential.user
    guard (1...Credential.maximumUserByteCount).contains(user.utf8.count),
      !user.unicodeScalars.contains(where: \.isControl)
    else { throw .badUser }
    guard Record.indices.contains(index) else { throw .badIndex }
    guard (1...Credential.maximumSecretByteCount).contains(credential.secret.count),
      credential.issuer.utf8.count <= Credential.maximumIssuerByteCount, credential.nextCounter <= maximumInteger,
      (lookAheadWindow ?? 0) <= 1_000_000, (1...64).contains(sealFieldByteLimit ?? 64)
    else { throw .badRecord }
    guard purpose.suits(credential.method) else { throw .unsuitableMethod }
  }
}

extension RecordPurpose {
  /// Returns whether codes of `method` can serve the purpose.
  ///
  /// OCRA suites with session information or a PIN's hash are not suitable: people do not enter session information,
  /// and the PIN already blinds the secret.
  package func suits(_ method: CodeMethod) -> Bool {
    guard case .ocra(let suite) = method else { return self == .otp }
    guard suite.length != nil, suite.pinHash == nil, suite.sessionByteCount == nil else { return false }
    return switch self {
    case .otp: true
    case .seal: suite.questionFormat == .hexadecimal && suite.questionLength == 64
    case .host:
      suite.questionFormat == .hexadecimal && suite.questionLength >= 16 && !suite.hasCounter
        && suite.timeStepSeconds == nil
    }
  }
}

extension Unicode.Scalar {
  /// Whether the scalar is a control character (C0, DEL, C1), a line separator, or changes the direction of the text
  /// after it.
  var isControl: Bool {
    switch value {
    case 0..<0x20, 0x7f..<0xa0, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069: true
    default: false
    }
  }
}

/// The check that no secret is stored twice. Two copies would reveal the PIN, because only the right PIN unblinds both
/// to the same secret.
extension Authenticator {
  /// Checks that no secret in `records` occurs twice in `records` and the file, unless both copies are unprotected.
  /// Copies in the file under another PIN, or with a key or host that was not given, cannot be detected.
  ///
  /// - Throws: `secretTwice`.
  func refuseSecretsTwice(
    _ records: [NewRecord], _ protector: borrowing ProtectionSecret
  ) throws(AuthenticatorFault) {
    for (index, record) in records.enumerated() {
      for other in records[..<index] where protector.inputs != .none && !(record.isOpen && other.isOpen) {
        let isSame = record.credential.secret.withBytes { secret in other.credential.hasSecret(secret) }
        if isSame { throw .secretTwice }
      }
    }
    for stored in try tables.records() {
      guard let secret = stored.secret else { continue }
      let isOpen = secret.protection == .none
      guard let plain = try secret.unblinded(withInputsOf: protector) else { continue }
      for record in records where !record.replaces(stored.record) {
        let staysOpen = record.isOpen || protector.inputs == .none
        guard !(isOpen && staysOpen) else { continue }
        if record.credential.hasSecret(plain.bytes) { throw .secretTwice }
      }
    }
  }
}

extension NewRecord {
  /// Whether the record is never protected.
  fileprivate var isOpen: Bool { purpose == .host }

  func replaces(_ record: Record) -> Bool {
    index == record.index && credential.user.utf8.elementsEqual(record.user.utf8)
  }
}

extension Credential {
  /// Returns whether the secret equals `other`. Timing: reveals only the result.
  fileprivate func hasSecret(_ other: Span<UInt8>) -> Bool {
    secret.withBytes { constantTimeEqual($0, other) }
  }
}

extension Authenticator {
  /// Returns a record with its secret, for export. A wrong PIN yields a wrong secret, which cannot be detected.
  ///
  /// - Throws: `demanded` if the device's owner demands a protection, which an exported secret would not have;
  ///   `protectionMismatch`, `notConfirmed`, `interrupted`, `unknownRecord`; `busy`, `failed`.
  package func credential(
    of record: Record, with protector: borrowing ProtectionSecret
  ) throws(AuthenticatorFault) -> Credential {
    let stored = try stored(record.user, record.index)
    if let demand = stored.record.demand { throw .demanded(demand) }
    let secret = try stored.usableSecret().unblinded(with: protector)
    return Credential(
      issuer: stored.record.issuer, user: stored.record.user, method: stored.record.method,
      nextCounter: stored.record.nextCounter, secret: secret)
  }
}

/// A record to be stored.
package struct NewRecord: Sendable {
  /// The index among the user's records, 1 to 8.
  package let index: Int
  /// The purpose of the record's codes.
  package let purpose: RecordPurpose
  /// The credential. Its user is the record's user, and the device is assumed to know its next counter.
  package let credential: Credential
  /// The device that has the same secret; nil for an account from another source.
  package let deviceID: DeviceID?
  /// The device's look-ahead window, in codes. Nil if it is not known, in which case no code is refused.
  package let lookAheadWindow: UInt64?
  /// The largest length of a field in a seal, in UTF-8 bytes; nil for the usual limit of 16 characters.
  package let sealFieldByteLimit: Int?
  /// The protection that the device's owner demands; nil for none.
  package let demand: ProtectionDemand?

  /// Creates a record from its fields, without checking them.
  package init(
    index: Int, purpose: RecordPurpose, credential: Credential, deviceID: DeviceID? = nil,
    lookAheadWindow: UInt64? = nil, sealFieldByteLimit: Int? = nil, demand: ProtectionDemand? = nil
  ) {
    (self.index, self.purpose, self.credential) = (index, purpose, credential)
    (self.deviceID, self.lookAheadWindow) = (deviceID, lookAheadWindow)
    (self.sealFieldByteLimit, self.demand) = (sealFieldByteLimit, demand)
  }
}
