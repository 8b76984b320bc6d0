import HoldfastCore
import HoldfastOpenSSL

extension Authenticator {
  /// Stores records with one protection, all or none. A host's record is stored unprotected whatever the protection.
  ///
  /// - Parameters:
  ///   - records: Each of another user or index.
  ///   - protector: A PIN that meets the rules, a key, or nothing.
  ///   - isConfirmed: Whether the device has the secrets too; ``confirmActivation(user:)`` says so later. Unconfirmed records
  ///     may be replaced.
  ///   - replacing: Whether confirmed records of the same user and index are replaced as well.
  /// - Throws: `secretTwice`, `exists`, `badUser`, `badIndex`, `badRecord`, `unsuitableMethod`, `weakPIN`; `busy`, `diskFull`, `failed`.
  package func add<Random: RandomSource & ~Copyable>(
    _ records: [NewRecord], protection protector: borrowing ProtectionSecret, isConfirmed: Bool = true,
    replacing: Bool = false, random: inout Random
  ) throws(AuthenticatorFault) {
    if let fault = protector.ruleFault { throw .weakPIN(fault) }
    for record in records { try record.check() }
    try refuseSecretsTwice(records, protector)
    var secrets: [BlindedSecret] = []
    let nothing = ProtectionSecret.none
    for record in records {
      if record.purpose == .host {
        secrets.append(try BlindedSecret(blinding: record.credential.secret, with: nothing, as: .none))
      } else {
        let protection = try Protection.fresh(protector.kind, cost: cost, random: &random)
        secrets.append(try BlindedSecret(blinding: record.credential.secret, with: protector, as: protection))
      }
    }
    try tables.transaction { () throws(AuthenticatorFault) in
      let group = try (tables.records().map(\.record.protectionGroup).max() ?? 0) + 1
      for (record, secret) in zip(records, secrets) {
        if let old = try tables.record(record.credential.user, record.index) {
          guard replacing || !old.record.isConfirmed else { throw .exists }
        }
        let stored = Record(record, protection: secret.protection.kind, group: group, isConfirmed: isConfirmed)
        try tables.save(StoredRecord(record: stored, secret: secret))
      }
    }
  }

  /// Records that a device has the secrets of a user's unconfirmed records; nil stands for any device.
  ///
  /// Throws `unknownRecord` without any record that is the device's or nobody's.
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

  /// Removes a user's records, or one of them, for good; returns how many. Throws `unknownRecord` where there is none.
  @discardableResult
  package func remove(user: String, index: Int? = nil) throws(AuthenticatorFault) -> Int {
    let count = try tables.transaction { () throws(AuthenticatorFault) in
      let removed = try tables.records(of: user).filter { (index ?? $0.record.index) == $0.record.index }
      for stored in removed { try tables.delete(user, stored.record.index) }
      return removed.count
    }
    guard count > 0 else { throw .unknownRecord }
    try tables.settle()
    return count
  }

  /// The lowest index that a user has no record of. Throws `exists` when he has all eight.
  package func freeIndex(user: String) throws(AuthenticatorFault) -> Int {
    let taken = try records(user: user).map(\.index)
    guard let free = Record.indices.first(where: { !taken.contains($0) }) else { throw .exists }
    return free
  }

  /// Takes over what a device has said of a user in a sealed verdict. Counters move on and never back. A code that was shown
  /// since a change of PIN and that the device has accepted confirms the change.
  ///
  /// - Parameters:
  ///   - deviceID: Which device has said it: records of another one stay as they are. Nil for all of the user's.
  ///   - offsetSeconds: How far the device's clock is ahead of this one; nil where it said nothing. At most 2^32 - 1.
  ///   - otpNext: The first counter or time step that the device would take as a one-time password.
  ///   - sealNext: The same for a seal.
  ///   - now: Unix seconds.
  /// - Throws: `unknownRecord` without a record of the user's that is that device's or nobody's, `badRecord`.
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
        if stored.record.change == .open, let next, let first = stored.record.changePosition, next > first {
          accepted.append(stored.record.index)
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
  fileprivate init(_ new: NewRecord, protection: ProtectionKind, group: UInt64, isConfirmed: Bool) {
    self.init(
      user: new.credential.user, index: new.index, purpose: new.purpose, issuer: new.credential.issuer,
      deviceID: new.deviceID, method: new.credential.method, nextCounter: new.credential.nextCounter,
      acknowledgedCounter: new.credential.nextCounter, clockOffsetSeconds: 0, lookAheadWindow: new.lookAheadWindow,
      sealFieldByteLimit: new.sealFieldByteLimit, protection: protection, protectionGroup: group,
      isConfirmed: isConfirmed, change: .none)
  }

  /// Whether what a device says is about it: it is that device's, or nobody knows whose.
  package func isOf(_ device: DeviceID?) -> Bool {
    guard let device, let deviceID else { return true }
    return deviceID == device
  }
}

extension NewRecord {
  /// Throws unless it can be stored and used.
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
  /// Whether codes of `method` can serve. OCRA suites with a PIN's hash or session information are not for people: the PIN
  /// is what the secret is blinded with here.
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
  /// Whether it is a control character (C0, DEL, C1) or changes the direction of what follows.
  var isControl: Bool {
    switch value {
    case 0..<0x20, 0x7f..<0xa0, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069: true
    default: false
    }
  }
}

/// A secret that is stored twice gives the PIN away: only the right one makes the same of both.
extension Authenticator {
  /// Throws `secretTwice` when two of `records`, or one of them and one in the file, have the same secret and are not both
  /// without protection. Those in the file that another PIN protects cannot be told.
  func refuseSecretsTwice(
    _ records: [NewRecord], _ protector: borrowing ProtectionSecret
  ) throws(AuthenticatorFault) {
    for (index, record) in records.enumerated() {
      for other in records[..<index] where protector.kind != .none && !(record.isOpen && other.isOpen) {
        let isSame = record.credential.secret.withBytes { secret in other.credential.hasSecret(secret) }
        if isSame { throw .secretTwice }
      }
    }
    for stored in try tables.records() {
      guard let secret = stored.secret else { continue }
      let isOpen = secret.protection == .none
      guard isOpen || secret.protection.kind == protector.kind else { continue }
      let plain = try isOpen ? secret.unblinded(with: ProtectionSecret.none) : secret.unblinded(with: protector)
      for record in records where !record.replaces(stored.record) {
        let staysOpen = record.isOpen || protector.kind == .none
        guard !(isOpen && staysOpen) else { continue }
        if record.credential.hasSecret(plain.bytes) { throw .secretTwice }
      }
    }
  }
}

extension NewRecord {
  /// Whether it is never protected.
  fileprivate var isOpen: Bool { purpose == .host }

  fileprivate func replaces(_ record: Record) -> Bool {
    index == record.index && credential.user.utf8.elementsEqual(record.user.utf8)
  }
}

extension Credential {
  /// Timing: tells nothing but whether it is.
  fileprivate func hasSecret(_ other: Span<UInt8>) -> Bool {
    secret.withBytes { constantTimeEqual($0, other) }
  }
}

extension Authenticator {
  /// A record with its secret, to go elsewhere. A wrong PIN gives a wrong secret, and nothing tells.
  ///
  /// Throws `protectionMismatch`, `notConfirmed`, `interrupted`, `unknownRecord`; `busy`, `failed`.
  package func credential(
    of record: Record, with protector: borrowing ProtectionSecret
  ) throws(AuthenticatorFault) -> Credential {
    let stored = try stored(record.user, record.index)
    let secret = try stored.usableSecret().unblinded(with: protector)
    return Credential(
      issuer: stored.record.issuer, user: stored.record.user, method: stored.record.method,
      nextCounter: stored.record.nextCounter, secret: secret)
  }
}

/// A record that is to be stored.
package struct NewRecord: Sendable {
  /// 1 to 8, the user's own.
  package let index: Int
  package let purpose: RecordPurpose
  /// Its user names the record's user; its next counter counts as one that the device knows.
  package let credential: Credential
  /// The device that has the same secret; nil for an account from elsewhere.
  package let deviceID: DeviceID?
  /// How many codes ahead the device looks; nil where that is not known, so that nothing is refused.
  package let lookAheadWindow: UInt64?
  /// The most UTF-8 bytes above 16 that a field of a seal may have, or nil for 16 characters.
  package let sealFieldByteLimit: Int?

  package init(
    index: Int, purpose: RecordPurpose, credential: Credential, deviceID: DeviceID? = nil,
    lookAheadWindow: UInt64? = nil, sealFieldByteLimit: Int? = nil
  ) {
    (self.index, self.purpose, self.credential) = (index, purpose, credential)
    (self.deviceID, self.lookAheadWindow) = (deviceID, lookAheadWindow)
    self.sealFieldByteLimit = sealFieldByteLimit
  }
}
