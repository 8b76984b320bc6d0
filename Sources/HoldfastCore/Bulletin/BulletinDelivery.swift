// A microcontroller takes no mail.
#if !hasFeature(Embedded)
/// The messages and the checks of signatures that a peer's last round permits.
///
/// Source: docs/couriers.md, Delivery in a session.
package struct MailAllowance {
  /// The most messages between two rounds.
  private static let messageLimit = 8
  /// The key that signed the token of the last round; nil unless its prover proved DM.
  private var issuer: KeyID?
  private var messageCount = 0
  private var hasCheck = false

  /// Creates an allowance of nothing.
  init() {}

  /// The allowance of the device's owner: one check, and no messages.
  package static var owner: MailAllowance {
    var allowance = MailAllowance()
    allowance.hasCheck = true
    return allowance
  }

  /// Takes note of a round in which a prover proved DM with a token that this key signed, and of which `isNew` says whether it was
  /// accepted and is no repetition.
  mutating func note(_ verifyingKey: KeyID?, isNew: Bool) {
    (issuer, messageCount, hasCheck) = (verifyingKey, 0, isNew)
  }

  /// Counts a message. Returns the key whose list the peer may see; nil if it may send no message.
  mutating func useMessage() -> KeyID? {
    guard messageCount < Self.messageLimit else { return nil }
    messageCount += 1
    return issuer
  }

  /// Uses up the check of a signature. Returns whether there was one.
  package mutating func useCheck() -> Bool {
    defer { hasCheck = false }
    return hasCheck
  }
}

extension DeviceSession {
  /// Answers a message about bulletins, and leaves the answer in ``outgoing``. It uses up neither the open challenge nor its time.
  ///
  /// Source: docs/couriers.md, Delivery in a session.
  ///
  /// - Parameter message: the peer's message, at most 4096 bytes.
  /// - Returns: the instructions for sending the answer; nil for any other message, which
  ///   ``respond(to:waitedMilliseconds:actuator:)`` judges.
  public mutating func respondToMail(_ message: Span<UInt8>) -> RoundOutcome? {
    guard Environment.Rules.knowsBulletins, activation == nil, isChallengeOpen else { return nil }
    let bulletin: Span<UInt8>?
    do throws(EncodingFault) {
      guard let mail = try BulletinMessage(message) else { return nil }
      bulletin = mail.bulletin
    } catch { return closing(.malformed) }
    guard let issuer = mail.useMessage() else { return closing(.malformed) }
    var isForged = false
    do throws(DeviceFault) {
      if let bulletin {
        let delivery = try deliver(bulletin)
        isForged = delivery == .forged
        answer(BulletinAnswer(delivery.result))
      } else if let list = try store.bulletins(of: issuer) {
        answer(BulletinAnswer(.taken, list: list))
      } else {
        answer(BulletinAnswer(.refused))
      }
    } catch { return closing(.internal) }
    return RoundOutcome(
      status: .accepted, isPeerAuthenticated: true, credential: nil, closesConnection: isForged,
      awaitsConfirmation: false, isMail: true, delayMilliseconds: 0)
  }

  private mutating func deliver(_ bulletin: Span<UInt8>) throws(DeviceFault) -> BulletinDelivery {
    try takeBulletin(
      bulletin, to: deviceID, key: &key, keyID: keyID, store: &store, policy: policy, realClock: clock.unixSeconds(),
      allowance: &mail, using: &cryptography)
  }

  private mutating func answer(_ answer: BulletinAnswer) {
    outgoing.removeAll()
    do throws(EncodingFault) { try answer.encode(into: &outgoing) } catch { outgoing.removeAll() }
  }

  /// Refuses a message, and ends the connection.
  private mutating func closing(_ status: Status) -> RoundOutcome {
    refuse(status)
    return RoundOutcome(
      status: status, isPeerAuthenticated: false, credential: nil, closesConnection: true, awaitsConfirmation: false,
      delayMilliseconds: 0)
  }
}

/// The end of a delivery: a judgement, or a forged signature.
package enum BulletinDelivery: Equatable {
  /// The result, which the peer learns.
  case judged(BulletinResult)
  /// The signature is wrong. The peer learns that the bulletin was refused.
  case forged

  /// The result that the peer learns.
  package var result: BulletinResult {
    switch self {
    case .judged(let result): result
    case .forged: .refused
    }
  }
}

/// Opens a bulletin, checks it in the order of docs/couriers.md, and lets the store take it.
///
/// A signature is checked only if the device does not have the bulletin yet and `allowance` has a check left.
///
/// - Parameters:
///   - bytes: the bulletin, signed or sealed.
///   - deviceID: the id of the device.
///   - key: the device's key; `keyID` is its id.
///   - store: the store of the device.
///   - policy: says which keys may introduce others, and how far ahead a bulletin may be issued.
///   - realClock: the real clock, in Unix seconds; nil if there is none.
///   - allowance: the peer's, or the owner's.
package func takeBulletin<
  Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable, Store: DeviceStore & ~Copyable,
  Rules: Policy & ~Copyable
>(
  _ bytes: Span<UInt8>, to deviceID: DeviceID, key: inout Key, keyID: KeyID, store: inout Store,
  policy: borrowing Rules, realClock: UInt64?, allowance: inout MailAllowance, using cryptography: inout Crypto
) throws(DeviceFault) -> BulletinDelivery {
  let isSealed = Bulletin.isSealed(bytes)
  guard isSealed else {
    return try takeBulletin(
      signed: bytes, sealedTo: nil, store: &store, policy: policy, realClock: realClock, allowance: &allowance,
      using: &cryptography)
  }
  guard bytes.count <= Bulletin.maximumByteCount else { return .judged(.refused) }
  // To read it is as much work as to check it.
  guard allowance.useCheck() else { return .judged(.busy) }
  var opener = TokenOpener()
  do throws(TokenFault) { try opener.decryptCOSE(bytes, key: &key, keyID: keyID, using: &cryptography) } catch {
    return .judged(.refused)
  }
  var check = MailAllowance.owner
  return try takeBulletin(
    signed: opener.plaintext.bytes, sealedTo: deviceID, store: &store, policy: policy, realClock: realClock,
    allowance: &check, using: &cryptography)
}

private func takeBulletin<
  Crypto: Cryptography & ~Copyable, Store: DeviceStore & ~Copyable, Rules: Policy & ~Copyable
>(
  signed bytes: Span<UInt8>, sealedTo device: DeviceID?, store: inout Store, policy: borrowing Rules,
  realClock: UInt64?, allowance: inout MailAllowance, using cryptography: inout Crypto
) throws(DeviceFault) -> BulletinDelivery {
  let bulletin: Bulletin
  do throws(EncodingFault) { bulletin = try Bulletin(bytes, sealedTo: device) } catch { return .judged(.refused) }
  guard case .signing(let point)? = store.trustedIssuer(bulletin.issuer) else { return .judged(.refused) }
  guard let number = try store.bulletins(of: bulletin.issuer)?.number(for: bulletin.claims.audience) else {
    return .judged(.notAddressed)
  }
  if bulletin.claims.number <= number { return .judged(.known) }
  if bulletin.claims.predecessor > number { return .judged(.missed) }
  guard allowance.useCheck() else { return .judged(.busy) }
  let verified: VerifiedBulletin
  do throws(CryptographyFailure) { verified = try bulletin.verified(by: point, using: &cryptography) } catch {
    return .forged
  }
  let terms = BulletinTerms(
    latestIssue: latestIssue(
      floor: try store.clockFloor(), advanceSeconds: policy.maximumIssueAdvanceSeconds, realClock: realClock),
    mayIntroduce: policy.mayIntroduce(bulletin.issuer), realClock: realClock)
  return .judged(try store.take(verified, on: terms))
}
#endif
