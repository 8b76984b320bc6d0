extension DeviceSession {
  /// Answers a message from a user without a token; returns nil for any other message. A positive answer is left in
  /// `outgoing`.
  @inline(never)
  package mutating func answerUser(_ message: Span<UInt8>, waitedMilliseconds: UInt64) -> Status? {
    let userMessage: ActivationMessage
    do throws(EncodingFault) {
      guard let decoded = try ActivationMessage(message) else { return nil }
      userMessage = decoded
    } catch { return .malformed }
    guard waitedMilliseconds <= Self.challengeLifetimeMilliseconds else { return .challengeExpired }
    do throws(DeviceFault) {
      if case .confirm(let mac) = userMessage {
        guard let pending = activation.take() else { return .challengeExpired }
        return try confirm(mac, pending)
      }
      guard isChallengeOpen else { return .challengeExpired }
      switch userMessage {
      case .activate(let point, let mac): return try grant(point, mac)
      case .unlock(let mac): return try unlock(mac)
      case .confirm: return .malformed
      }
    } catch { return .internal }
  }

  /// Returns the owner's code whose key made `mac`, if there is one that is still good. It tries all codes.
  private mutating func findCode(
    _ purpose: OneUseCode.Purpose, mac: MAC, over digest: Digest
  ) throws(DeviceFault) -> OneUseCodeRecord? {
    let now = try now()
    var found: OneUseCodeRecord?
    var index = 0
    while true {
      guard let record = try store.oneUseCode(at: index) else { return found }
      index += 1
      let expected: MAC
      do throws(CryptographyFailure) {
        expected = try authenticationCode(key: record.key, digest, using: &cryptography)
      } catch { throw .cryptography }
      if constantTimeEqual(expected.bytes, mac.bytes), record.purpose == purpose, now < record.expires {
        found = .some(consume record)
      }
    }
  }

  @inline(never)
  private mutating func grant(_ clientPoint: P256Point, _ mac: MAC) throws(DeviceFault) -> Status {
    let opening: Digest
    do throws(CryptographyFailure) {
      opening = try ActivationKeys.opening(
        challenge: challenge.bytes, clientPoint: clientPoint, using: &cryptography)
    } catch { return .internal }
    guard let code = try findCode(.activation, mac: mac, over: opening) else { return .otpRejected }
    let key: FreshKey
    key = try FreshKey(using: &cryptography, &random)
    let point = key.publicPoint
    let keys: ActivationKeys
    do throws(CryptographyFailure) {
      let shared = try key.agree(with: clientPoint, using: &cryptography)
      keys = try ActivationKeys(
        shared: shared, code: code.key, opening: opening, devicePoint: point, using: &cryptography)
    } catch { return .otpRejected }
    let now = try now()
    let grant = ActivationGrant(
      user: code.user, time: now, methods: code.methods,
      sealParameterLength: UInt64(policy.codeLimits.sealParameterLength))
    var demand: ProtectionDemand?
    if Environment.Rules.knowsAuthenticators { demand = try store.protectionDemand(ofCode: code.id) }
    guard write(grant, demand, devicePoint: point, keys: keys) else { return .internal }
    activation = PendingActivation(codeID: code.id, keys: keys)
    credential = .code(code.id)
    return .accepted
  }

  private mutating func write(
    _ grant: ActivationGrant, _ demand: ProtectionDemand?, devicePoint: P256Point, keys: borrowing ActivationKeys
  ) -> Bool {
    var sealed = ByteBuffer<384>()
    do throws(EncodingFault) {
      if Environment.Rules.knowsAuthenticators, let demand {
        try grant.encode(with: demand, into: &sealed)
      } else {
        try grant.encode(into: &sealed)
      }
    } catch { return false }
    do throws(CryptographyFailure) {
      try sealed.seal(
        key: keys.grant, nonce: FixedBytes<12>().bytes, authenticating: keys.transcript.bytes, using: &cryptography)
    } catch { return false }
    do throws(EncodingFault) {
      try outgoing.appendCBOR(array: 3)
      try outgoing.appendCBOR(unsigned: Message.grantType)
      try outgoing.appendCBOR(bytes: devicePoint.bytes)
      try outgoing.appendCBOR(bytes: sealed.bytes)
      return true
    } catch {
      outgoing.removeAll()
      return false
    }
  }

  /// Makes the secrets valid and uses up the code, since the user has stored the secrets.
  @inline(never)
  private mutating func confirm(
    _ mac: MAC, _ pending: consuming PendingActivation
  ) throws(DeviceFault) -> Status {
    let expected: MAC
    let answer: MAC
    do throws(CryptographyFailure) {
      expected = try authenticationCode(key: pending.keys.client, pending.keys.transcript, using: &cryptography)
      answer = try authenticationCode(key: pending.keys.device, pending.keys.transcript, using: &cryptography)
    } catch { return .internal }
    guard constantTimeEqual(expected.bytes, mac.bytes) else { return .otpRejected }
    let clock = try realClock()
    let isActivated = try store.activate(pending.codeID, pending.keys.secrets, realClock: clock) {
      $0.activatedUser(realClock: clock)
    }
    guard isActivated else { return .otpRejected }
    credential = .code(pending.codeID)
    return reply(Message.activatedType, answer)
  }

  @inline(never)
  private mutating func unlock(_ mac: MAC) throws(DeviceFault) -> Status {
    let digest: Digest
    do throws(CryptographyFailure) {
      digest = try ActivationKeys.unlocking(challenge: challenge.bytes, using: &cryptography)
    } catch { return .internal }
    guard let code = try findCode(.unlock, mac: mac, over: digest) else { return .otpRejected }
    let answer: MAC
    do throws(CryptographyFailure) {
      answer = try authenticationCode(key: code.key, prefix: "\u{1}", digest, using: &cryptography)
    } catch { return .internal }
    let clock = try realClock()
    guard try store.unlock(code.id, realClock: clock, decide: { $0.unlockedUser(realClock: clock) }) else {
      return .otpRejected
    }
    credential = .code(code.id)
    return reply(Message.unlockedType, answer)
  }

  private mutating func reply(_ type: UInt64, _ mac: MAC) -> Status {
    do throws(EncodingFault) {
      try outgoing.appendMAC(type, mac)
      return .accepted
    } catch {
      outgoing.removeAll()
      return .internal
    }
  }
}

/// The facts that the device's store holds about one of the owner's codes, read in the transaction that uses it up.
public struct CodeFacts: ~Copyable {
  /// The record of the code.
  public let code: OneUseCodeRecord
  /// The record of the code's user; nil for an unknown user.
  public let user: UserRecord?
  /// The number of users.
  public let userCount: Int
  /// The most users that the store has room for.
  public let userCapacity: Int
  /// The clock floor, in Unix seconds.
  public let clockFloor: UInt64

  /// Creates the facts from what a store holds.
  public init(
    code: consuming OneUseCodeRecord, user: UserRecord?, userCount: Int, userCapacity: Int, clockFloor: UInt64
  ) {
    (self.user, self.userCount, self.userCapacity, self.clockFloor) = (user, userCount, userCapacity, clockFloor)
    self.code = code
  }

  /// Returns the record of the user whom an activation code creates, who may replace one of the same name. Returns nil if
  /// the code is not good, or if there is no room for the user. `realClock` is in Unix seconds.
  package func activatedUser(realClock: UInt64?) -> UserRecord? {
    let now = max(clockFloor, realClock ?? 0)
    guard isGood(.activation, at: now) else { return nil }
    // A comparison with nil would be that of whole records.
    if case .none = user, userCount >= userCapacity { return nil }
    var activated = UserRecord(id: 0, lastAccepted: now)
    activated.accounts = code.methods.map { CodeAccount(method: $0) }
    return activated
  }

  /// Returns the user of an unlocking code, unlocked; nil if the code is not good, or if there is no such user.
  /// `realClock` is in Unix seconds.
  package func unlockedUser(realClock: UInt64?) -> UserRecord? {
    guard isGood(.unlock, at: max(clockFloor, realClock ?? 0)), var unlocked = user else { return nil }
    unlocked.unlock()
    return unlocked
  }

  private func isGood(_ purpose: OneUseCode.Purpose, at now: UInt64) -> Bool {
    code.purpose == purpose && now < code.expires
  }
}

/// An activation that waits for the user's confirmation, and the number of its code.
package struct PendingActivation: ~Copyable {
  let codeID: UInt64
  let keys: ActivationKeys

  init(codeID: UInt64, keys: consuming ActivationKeys) {
    self.codeID = codeID
    self.keys = keys
  }
}
