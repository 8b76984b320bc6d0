// A microcontroller takes no mail.
#if !hasFeature(Embedded)
/// The answer of a device to a message about mail.
public struct MailAnswer: Sendable {
  /// The answer, at most 4096 bytes; empty if it could not be made.
  public let message: [UInt8]
  /// The instructions for sending it.
  public let outcome: RoundOutcome
}

extension DeviceSession {
  /// Answers a message about mail. It uses up neither the open challenge nor its time.
  ///
  /// Source: docs/couriers.md, Delivery in a session.
  ///
  /// - Parameter message: the peer's message, at most 4096 bytes.
  /// - Returns: the answer; nil for any other message, which ``respond(to:waitedMilliseconds:actuator:)`` judges.
  public mutating func respondToMail(_ message: Span<UInt8>) -> MailAnswer? {
    guard Environment.Rules.knowsBulletins, activation == nil, isChallengeOpen else { return nil }
    let judgement: MailJudgement
    do throws(DeviceFault) {
      judgement = try judgeMail(
        message, to: deviceID, key: &key, keyID: keyID, store: &store, policy: policy, realClock: clock.unixSeconds(),
        allowance: &mail, using: &cryptography)
    } catch { return closing(.internal) }
    switch judgement {
    case .otherMessage: return nil
    case .malformed: return closing(.malformed)
    case .answered(let answer, let isForged):
      return MailAnswer(
        message: answer,
        outcome: RoundOutcome(
          status: .accepted, isPeerAuthenticated: true, credential: nil, closesConnection: isForged,
          awaitsConfirmation: false, isMail: true, delayMilliseconds: 0))
    }
  }

  /// Refuses a message, and ends the connection.
  private mutating func closing(_ status: Status) -> MailAnswer {
    refuse(status)
    let refusal = outgoing.bytes
    return MailAnswer(
      message: refusal.indices.map { refusal[$0] },
      outcome: RoundOutcome(
        status: status, isPeerAuthenticated: false, credential: nil, closesConnection: true, awaitsConfirmation: false,
        delayMilliseconds: 0))
  }
}

/// The judgement of a device on a message between rounds.
package enum MailJudgement {
  /// The message is not about mail.
  case otherMessage
  /// The message is malformed, or there was one too many. The connection ends.
  case malformed
  /// The answer, at most 4096 bytes. After a forged signature, the connection ends.
  case answered([UInt8], isForged: Bool)
}

/// Judges a message between rounds, and lets the store take or give what it is about.
///
/// Source: docs/couriers.md, Delivery in a session.
///
/// - Parameters:
///   - message: the peer's message, at most 4096 bytes.
///   - deviceID: the id of the device.
///   - key: the device's key.
///   - keyID: the id of `key`.
///   - store: the store of the device.
///   - policy: says which keys may introduce others, how far ahead a bulletin may be issued, and where the audit log goes.
///   - realClock: the real clock, in Unix seconds; nil if there is none.
///   - allowance: the peer's.
///   - cryptography: an implementation of the primitives.
package func judgeMail<
  Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable, Store: DeviceStore & ~Copyable,
  Rules: Policy & ~Copyable
>(
  _ message: Span<UInt8>, to deviceID: DeviceID, key: inout Key, keyID: KeyID, store: inout Store,
  policy: borrowing Rules, realClock: UInt64?, allowance: inout MailAllowance, using cryptography: inout Crypto
) throws(DeviceFault) -> MailJudgement {
  let mail: MailMessage
  do throws(EncodingFault) {
    guard let known = try MailMessage(message) else { return .otherMessage }
    mail = known
  } catch { return .malformed }
  guard let issuer = allowance.useMessage() else { return .malformed }
  var answer: [UInt8] = []
  var isForged = false
  switch mail.kind {
  case .bulletin:
    let delivery = try takeBulletin(
      mail.bytes, to: deviceID, key: &key, keyID: keyID, store: &store, policy: policy, realClock: realClock,
      allowance: &allowance, using: &cryptography)
    isForged = delivery == .forged
    BulletinAnswer(delivery.result).encode(into: &answer)
  case .list:
    let list = try store.bulletins(of: issuer)
    BulletinAnswer(list == nil ? .refused : .taken, list: list).encode(into: &answer)
  case .page(let from):
    var page: [UInt8]?
    if let home = policy.auditHome, allowance.usePage() { page = try store.auditPage(from: from, for: home) }
    PageAnswer(page).encode(into: &answer)
  case .receipt:
    let delivery = try takeReceipt(
      mail.bytes, to: deviceID, store: &store, policy: policy, realClock: realClock, allowance: &allowance,
      using: &cryptography)
    isForged = delivery == .forged
    BulletinAnswer(delivery.result).encode(into: &answer)
  }
  return .answered(answer, isForged: isForged)
}

/// Checks a receipt in the order of docs/couriers.md, Receipts, and lets the store take it.
private func takeReceipt<
  Crypto: Cryptography & ~Copyable, Store: DeviceStore & ~Copyable, Rules: Policy & ~Copyable
>(
  _ bytes: Span<UInt8>, to deviceID: DeviceID, store: inout Store, policy: borrowing Rules, realClock: UInt64?,
  allowance: inout MailAllowance, using cryptography: inout Crypto
) throws(DeviceFault) -> BulletinDelivery {
  let receipt: AuditReceipt
  do throws(EncodingFault) { receipt = try AuditReceipt(bytes) } catch { return .judged(.refused) }
  guard receipt.home == policy.auditHome, case .signing(let point)? = store.trustedIssuer(receipt.home) else {
    return .judged(.refused)
  }
  guard receipt.device == deviceID else { return .judged(.notAddressed) }
  if receipt.chain.count <= (try store.acknowledgedAuditCount()) { return .judged(.known) }
  guard allowance.useCheck() else { return .judged(.busy) }
  do throws(CryptographyFailure) { try receipt.verify(by: point, using: &cryptography) } catch { return .forged }
  return .judged(try store.acknowledgeAudit(receipt.chain, by: receipt.home, realClock: realClock))
}
#endif
