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
    var answer: [UInt8] = []
    let judgement: MailJudgement
    do throws(DeviceFault) {
      judgement = try judgeMail(
        message, to: deviceID, key: &key, keyID: keyID, store: &store, policy: policy, realClock: clock.unixSeconds(),
        allowance: &mail, into: &answer, using: &cryptography)
    } catch { return closing(.internal) }
    switch judgement {
    case .otherMessage: return nil
    case .malformed: return closing(.malformed)
    case .page(let from):
      do throws(DeviceFault) { try answerPage(from: from, into: &answer) } catch { return closing(.internal) }
      return answered(answer)
    case .answered(let isForged): return answered(answer, isForged: isForged)
    }
  }

  private mutating func answerPage(from: UInt64, into answer: inout [UInt8]) throws(DeviceFault) {
    var page: [UInt8]?
    if let home = policy.auditHome { page = try store.auditPage(from: from, for: home) }
    PageAnswer(page).encode(into: &answer)
  }

  private func answered(_ answer: [UInt8], isForged: Bool = false) -> MailAnswer {
    MailAnswer(
      message: answer,
      outcome: RoundOutcome(
        status: .accepted, isPeerAuthenticated: true, credential: nil, closesConnection: isForged,
        awaitsConfirmation: false, isMail: true, delayMilliseconds: 0))
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
#endif

extension DeviceSession {
  /// Answers a message about mail as `respondToMail` does, for a device without a heap: leaves the answer in ``outgoing``. If the
  /// connection ends, ``isChallengeOpen`` is false afterwards.
  ///
  /// - Parameter message: the peer's message, at most 4096 bytes.
  /// - Returns: `accepted` after an answer about mail; nil for a message that is not about mail, which
  ///   ``respond(to:waitedMilliseconds:actuator:)`` judges.
  @inline(never)
  package mutating func answerMail(_ message: Span<UInt8>) -> Status? {
    // Most messages are M2, an array of another length.
    guard message.count > 1, message[0] == 0x82, activation == nil, isChallengeOpen else { return nil }
    outgoing.removeAll()
    let judgement: MailJudgement
    do throws(DeviceFault) {
      judgement = try judgeMail(
        message, to: deviceID, key: &key, keyID: keyID, store: &store, policy: policy, realClock: clock.unixSeconds(),
        allowance: &mail, into: &outgoing, using: &cryptography)
    } catch {
      refuse(.internal)
      return .internal
    }
    switch judgement {
    case .otherMessage: return nil
    case .malformed:
      refuse(.malformed)
      return .malformed
    case .page(let from):
      do throws(DeviceFault) { try answerPage(from: from) } catch {
        refuse(.internal)
        return .internal
      }
    case .answered(let isForged):
      if isForged { (isChallengeOpen, mail) = (false, MailAllowance()) }
    }
    return .accepted
  }

  /// Leaves `[10, sealed / null]` in ``outgoing``. The page's text is sealed where it was written.
  @inline(never)
  private mutating func answerPage(from: UInt64) throws(DeviceFault) {
    var text = SealedReplyBuffer()
    let point = try store.writeAuditPage(from: from, into: &text)
    do throws(EncodingFault) {
      guard let point, let home = policy.auditHome else { return try outgoing.appendNoPage() }
      try outgoing.appendCBOR(array: 2)
      try outgoing.appendCBOR(unsigned: Message.pageType)
      let mac = try seal(&text, for: home, point)
      try outgoing.appendCBOR(byteStringHead: 16 + text.count)
      try outgoing.append(mac.bytes.extracting(first: 16))
      try outgoing.append(text.bytes)
    } catch { throw .encoding }
  }

  /// Seals the text of a page, and returns the MAC whose first 16 bytes are its salt. The secret that the device shares with the home is computed once.
  private mutating func seal(
    _ text: inout SealedReplyBuffer, for home: KeyID, _ point: P256Point
  ) throws(EncodingFault) -> MAC {
    do throws(CryptographyFailure) {
      if !hasPageSecret { try key.agree(with: point, into: &pageSecret) }
      hasPageSecret = true
      let random: FixedBytes<16>
      do throws(RandomFailure) { random = try self.random.fixedBytes() } catch { throw CryptographyFailure() }
      let mac = try auditPageSalt(for: text.bytes, random, under: pageSecret, using: &cryptography)
      try text.seal(
        key: try auditPageKey(
          from: pageSecret, salt: mac.bytes.extracting(first: 16), device: deviceID, home: home, using: &cryptography),
        nonce: FixedBytes<12>().bytes, authenticating: Span(), using: &cryptography)
      return mac
    } catch { throw .unexpected }
  }
}

/// The judgement of a device on a message between rounds.
package enum MailJudgement {
  /// The message is not about mail.
  case otherMessage
  /// The message is malformed, or there was one too many. The connection ends.
  case malformed
  /// The message asks for a page of the audit log that begins with this entry, or, with 0, with one that the device chooses.
  case page(from: UInt64)
  /// The message was answered. After a forged signature, the connection ends.
  case answered(isForged: Bool)
}

/// Judges a message between rounds, and lets the store take or give what it is about.
///
/// Source: docs/couriers.md, Delivery in a session.
///
/// A page is not made here, because that depends on the memory of the device.
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
///   - answer: takes the answer, at most 4096 bytes.
///   - cryptography: an implementation of the primitives.
package func judgeMail<
  Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable, Store: DeviceStore & ~Copyable,
  Rules: Policy & ~Copyable, Sink: ByteSink & ~Copyable
>(
  _ message: Span<UInt8>, to deviceID: DeviceID, key: inout Key, keyID: KeyID, store: inout Store,
  policy: borrowing Rules, realClock: UInt64?, allowance: inout MailAllowance, into answer: inout Sink,
  using cryptography: inout Crypto
) throws(DeviceFault) -> MailJudgement {
  let mail: MailMessage
  do throws(EncodingFault) {
    guard let known = try MailMessage(message) else { return .otherMessage }
    mail = known
  } catch { return .malformed }
  guard let issuer = allowance.useMessage() else { return .malformed }
  var isForged = false
  var result = BulletinResult.taken
  var list = EncodedBulletinList()
  switch mail.kind {
  case .bulletin:
    let delivery = try takeBulletin(
      mail.bytes, to: deviceID, key: &key, keyID: keyID, store: &store, policy: policy, realClock: realClock,
      allowance: &allowance, using: &cryptography)
    isForged = delivery == .forged
    result = delivery.result
  case .list:
    if try !store.writeBulletins(of: issuer, into: &list) { result = .refused }
  case .page(let from):
    if allowance.usePage() { return .page(from: from) }
    do throws(Sink.Failure) { try answer.appendNoPage() } catch { throw .encoding }
    return .answered(isForged: false)
  case .receipt:
    let delivery = try takeReceipt(
      mail.bytes, to: deviceID, store: &store, policy: policy, realClock: realClock, allowance: &allowance,
      using: &cryptography)
    isForged = delivery == .forged
    result = delivery.result
  }
  do throws(Sink.Failure) { try answer.append(result, list) } catch { throw .encoding }
  return .answered(isForged: isForged)
}

extension ByteSink where Self: ~Copyable {
  /// Writes `[10, null]`.
  fileprivate mutating func appendNoPage() throws(Failure) {
    try appendCBOR(array: 2)
    try appendCBOR(unsigned: Message.pageType)
    try appendCBORNull()
  }

  /// Writes `[8, result]`, or `[8, result, list]` with a list.
  fileprivate mutating func append(_ result: BulletinResult, _ list: borrowing EncodedBulletinList) throws(Failure) {
    try appendCBOR(array: list.buffer.count == 0 ? 2 : 3)
    try appendCBOR(unsigned: Message.bulletinResultType)
    try appendCBOR(unsigned: UInt64(result.rawValue))
    try append(list.buffer.bytes)
  }
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
  // The optional is unwrapped first: for a Cortex-M4, Swift 6.3 miscompiles `==` with an optional.
  guard let home = policy.auditHome, receipt.home == home, let point = store.signingKey(home) else {
    return .judged(.refused)
  }
  guard receipt.device == deviceID else { return .judged(.notAddressed) }
  if receipt.chain.count <= (try store.acknowledgedAuditCount()) { return .judged(.known) }
  guard allowance.useCheck() else { return .judged(.busy) }
  do throws(CryptographyFailure) { try receipt.verify(by: point, using: &cryptography) } catch { return .forged }
  return .judged(try store.acknowledgeAudit(receipt.chain, by: home, realClock: realClock))
}
