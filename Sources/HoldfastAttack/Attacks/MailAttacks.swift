import HoldfastCore
import HoldfastIssuer
import HoldfastOpenSSL

/// Attacks of couriers: mail from strangers, forged and foreign bulletins and receipts, too much of it. A device that knows no mail refuses
/// all of it as malformed.
///
/// Source: docs/couriers.md.
extension Attack {
  static let mail: [Attack] = [
    Attack(
      "mail-of-a-stranger", "Before any proof, mail of each kind is sent, and the list of bulletins asked for.",
      due: text(of: [.malformed]) + ", for each", .connections
    ) { (adversary) throws(AttackFault) in
      var replies: [MailReply] = []
      for (kind, bytes) in MailMessage.Kind.unearned {
        replies.append(adversary.send(kind, bytes, on: try adversary.connect()))
        if replies.last?.isMalformed != true { break }
      }
      return Finding(replies) { $0.isMalformed }
    },
    Attack(
      "mail-after-a-failed-proof", "The list of bulletins is asked for after a wrong proof.",
      due: text(of: [.malformed])
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      var draft = try adversary.draft(on: line)
      draft.deviceProof = MAC()
      guard adversary.exchange(draft, on: line).refuses(with: [.deviceMismatch]) else {
        return Finding("the wrong proof was not refused", isSound: false)
      }
      try adversary.proceed(on: line)
      return Finding([adversary.send(.list, [], on: line)]) { $0.isMalformed }
    },
    delivery("bulletin-that-is-none", "Bytes that are no bulletin are delivered as one.") { (_) in
      (.bulletin, [UInt8](repeating: 0xff, count: 100))
    },
    delivery("foreign-bulletin", "A bulletin of a key that the device does not trust is delivered.") {
      (adversary) throws(AttackFault) in (.bulletin, try adversary.forgedBulletin(as: nil))
    },
    delivery(
      "forged-bulletin", "A bulletin under a trusted key's id is delivered, which another key signed.",
      .issuerPoint
    ) { (adversary) throws(AttackFault) in (.bulletin, try adversary.forgedBulletin(as: adversary.issuerPoint)) },
    delivery(
      "forged-sealed-bulletin", "A forged bulletin under a trusted key's id is delivered encrypted to the device.",
      .issuerPoint
    ) { (adversary) throws(AttackFault) in
      (.bulletin, try adversary.encrypted(try adversary.forgedBulletin(as: adversary.issuerPoint)))
    },
    delivery(
      "bulletin-of-another-device", "A bulletin of a trusted key for another device is delivered.", .issuer
    ) { (adversary) throws(AttackFault) in
      let other = AudienceID(adversary.descriptor.deviceID.bytes)!.flippingFirstBit
      return (.bulletin, try adversary.issuedBulletin(for: other, seconds: adversary.time))
    },
    delivery(
      "future-bulletin", "A bulletin of a trusted key was issued in a hundred years.", [.issuer, .destruction]
    ) { (adversary) throws(AttackFault) in
      let audience = AudienceID(adversary.descriptor.deviceID.bytes)!
      return (.bulletin, try adversary.issuedBulletin(for: audience, seconds: adversary.time + 3_153_600_000))
    },
    delivery("foreign-receipt", "A receipt of a key that the device does not trust acknowledges its audit log.") {
      (adversary) throws(AttackFault) in (.receipt, try adversary.forgedReceipt(as: nil))
    },
    delivery(
      "forged-receipt", "A receipt under a trusted key's id, signed by another key, acknowledges the audit log.",
      .issuerPoint
    ) { (adversary) throws(AttackFault) in (.receipt, try adversary.forgedReceipt(as: adversary.issuerPoint)) },
    delivery(
      "receipt-for-nothing", "A receipt of a trusted key acknowledges entries that the audit log never had.", .issuer
    ) { (adversary) throws(AttackFault) in (.receipt, try adversary.issuedReceipt()) },
    Attack(
      "mail-after-a-forgery", "After a bulletin with a wrong signature, the list is asked for on the same connection.",
      due: "the end of the connection, or \(text(of: [.malformed]))", [.acceptance, .issuerPoint]
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      guard try adversary.acceptedRound(on: line) != nil else { return .noRound }
      let first = adversary.send(.bulletin, try adversary.forgedBulletin(as: adversary.issuerPoint), on: line)
      guard case .result(let result, isList: false) = first else { return Finding([first]) { $0.isMalformed } }
      // Its number may be known already, which is said before the signature is looked at.
      guard result == .refused else { return Finding(first.text, isSound: result != .taken) }
      var last = adversary.send(.list, [], on: line)
      // A line cannot end: there, the next round begins, in which nothing is proved yet.
      if last == .other(.challenge) { last = MailReply(line.receive(by: adversary.answerDeadline)) }
      return Finding([last]) { $0.isMalformed }
    },
    Attack(
      "two-pages", "After one accepted round, two pages of the audit log are asked for.",
      due: "no second page, or \(text(of: [.malformed]))", .acceptance
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      guard try adversary.acceptedRound(on: line) != nil else { return .noRound }
      let first = adversary.send(.page(from: 0), [], on: line)
      guard case .page = first else { return Finding([first]) { $0.isMalformed } }
      return Finding([adversary.send(.page(from: 0), [], on: line)]) { $0 == .page(isThere: false) || $0.isMalformed }
    },
    Attack(
      "page-beyond-the-end", "The page is asked for that begins with entry 2^53 - 1.",
      due: "no page, or \(text(of: [.malformed]))", .acceptance
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      guard try adversary.acceptedRound(on: line) != nil else { return .noRound }
      return Finding([adversary.send(.page(from: maximumInteger), [], on: line)]) {
        $0 == .page(isThere: false) || $0.isMalformed
      }
    },
    Attack(
      "flood-of-mail", "After one accepted round, the list of bulletins is asked for twenty times.",
      due: text(of: [.malformed]) + ", for the ninth question at the latest", .acceptance
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      guard try adversary.acceptedRound(on: line) != nil else { return .noRound }
      for count in 1...20 {
        let reply = adversary.send(.list, [], on: line)
        guard case .result = reply else {
          return Finding("to question \(count): \(reply.text)", isSound: reply.isMalformed && count <= 9)
        }
      }
      return Finding("twenty answers", isSound: false)
    },
  ]

  /// Makes an attack that delivers mail after an accepted round. The device must not take it, and its list must not change.
  private static func delivery(
    _ id: String, _ did: String, _ needs: Needs = [],
    _ mail: @escaping @Sendable (inout Adversary) throws(AttackFault) -> (MailMessage.Kind, [UInt8])
  ) -> Attack {
    Attack(
      id, did, due: "any result but taken, or \(text(of: [.malformed])), and that nothing changes",
      needs.union(.acceptance)
    ) { (adversary) throws(AttackFault) in
      guard let (before, reply) = try adversary.deliver(mail) else { return .noRound }
      guard reply.isRefusal else { return Finding(reply.text, isSound: false) }
      guard let after = try adversary.acceptedRound(on: try adversary.connect()) else { return .noRound }
      guard before.bulletinState == after.bulletinState else {
        return Finding("\(reply.text), and another list of bulletins afterwards", isSound: false)
      }
      return Finding(reply.text, isSound: true)
    }
  }
}

/// The answer of a device to mail.
private enum MailReply: Equatable {
  case result(BulletinResult, isList: Bool)
  case page(isThere: Bool)
  case other(Reply)

  init(_ heard: Heard) {
    guard case .message(let bytes) = heard else {
      self = .other(Reply(heard))
      return
    }
    if let answer = try? BulletinAnswer(bytes.span) {
      self = .result(answer.result, isList: answer.list != nil)
    } else if let answer = try? PageAnswer(bytes.span) {
      self = .page(isThere: answer.sealed != nil)
    } else {
      self = .other(Reply(heard))
    }
  }

  var text: String {
    switch self {
    case .result(let result, let isList): isList ? "the list of its bulletins" : "the result \(result)"
    case .page(let isThere): isThere ? "a page of its audit log" : "no page"
    case .other(let reply): reply.text
    }
  }

  /// Whether the device takes the message for none of the protocol.
  var isMalformed: Bool {
    guard case .other(let reply) = self else { return false }
    return reply.refuses(with: [.malformed])
  }

  /// Whether the device refuses mail, in whatever way.
  var isRefusal: Bool {
    guard case .result(let result, let isList) = self else { return isMalformed }
    return result != .taken && !isList
  }
}

extension MailMessage.Kind {
  /// Messages of each kind, with mail that anybody can make up.
  fileprivate static let unearned: [(MailMessage.Kind, [UInt8])] = [
    (.list, []), (.page(from: 0), []), (.bulletin, [0xff]), (.receipt, [0xff]),
  ]
}

extension Finding {
  /// The finding if an honest round, which precedes mail, is not accepted.
  fileprivate static let noRound = Finding("an honest round was not accepted", isSound: false)

  /// Judges several replies, each of which must be as `isSound` says. The first that is not is shown.
  fileprivate init(_ replies: [MailReply], isSound: (MailReply) -> Bool) {
    let shown = replies.first { !isSound($0) } ?? replies.last
    self.init(shown?.text ?? "", isSound: shown.map(isSound) ?? false)
  }
}

extension Adversary {
  /// The device's time, or that of the prover's token, in Unix seconds.
  fileprivate var time: UInt64 { max(deviceTime ?? 0, report?.issued ?? 0) }

  /// Delivers mail after an accepted round, on a connection that has ended afterwards. Returns the details of the round's verdict and the
  /// answer; nil if the round was not accepted.
  fileprivate mutating func deliver(
    _ mail: (inout Adversary) throws(AttackFault) -> (MailMessage.Kind, [UInt8])
  ) throws(AttackFault) -> (before: Notice, reply: MailReply)? {
    let line = try connect()
    guard let before = try acceptedRound(on: line) else { return nil }
    let (kind, bytes) = try mail(&self)
    return (before, send(kind, bytes, on: line))
  }

  /// Sends mail in place of M2.
  fileprivate mutating func send(_ kind: MailMessage.Kind, _ bytes: [UInt8], on line: Line) -> MailReply {
    var message: [UInt8] = []
    MailMessage.encode(kind, bytes.span, into: &message)
    return MailReply(line.exchange(message, by: answerDeadline))
  }

  /// Returns a bulletin that only tells the time, signed by a key of the adversary: under that key's id, or under another's.
  fileprivate mutating func forgedBulletin(as other: P256Point?) throws(AttackFault) -> [UInt8] {
    do throws(CryptographyFailure) {
      var key = try P256PrivateKey()
      return try bulletin(
        by: &key, as: other ?? key.publicPoint, for: AudienceID(descriptor.deviceID.bytes)!, seconds: time)
    } catch { throw .cryptography }
  }

  /// Returns the same of the trusted issuer.
  fileprivate mutating func issuedBulletin(for audience: AudienceID, seconds: UInt64) throws(AttackFault) -> [UInt8] {
    guard let issuer, let issuerPoint else { throw .notTried("it needs the issuer's key: --service") }
    do throws(CryptographyFailure) {
      return try issuer.signing { (key) throws(CryptographyFailure) in
        try bulletin(by: &key, as: issuerPoint, for: audience, seconds: seconds)
      }
    } catch { throw .cryptography }
  }

  /// Encrypts a bulletin to the device, as those that name its users are.
  fileprivate func encrypted(_ bulletin: [UInt8]) throws(AttackFault) -> [UInt8] {
    do throws(CryptographyFailure) {
      return try Forger.encrypt(bulletin, to: descriptor.publicPoint, by: Agreement(with: descriptor.publicPoint))
    } catch { throw .cryptography }
  }

  private mutating func bulletin(
    by key: inout P256PrivateKey, as point: P256Point, for audience: AudienceID, seconds: UInt64
  ) throws(CryptographyFailure) -> [UInt8] {
    let stamp = BulletinStamp(after: 0, isComplete: true, milliseconds: 1000 * seconds + 999, audience: audience)
    let writer = try BulletinWriter(of: point)
    do throws(BulletinFault) { return try writer.write(BulletinContents(), stamp, key: &key, random: &random) } catch {
      throw CryptographyFailure()
    }
  }

  /// Returns a receipt for one entry, signed by a key of the adversary: under that key's id, or under another's.
  fileprivate mutating func forgedReceipt(as other: P256Point?) throws(AttackFault) -> [UInt8] {
    do throws(CryptographyFailure) {
      var key = try P256PrivateKey()
      return try receipt(by: &key, as: other ?? key.publicPoint)
    } catch { throw .cryptography }
  }

  /// Returns the same of the trusted issuer, with a hash that no log has.
  fileprivate mutating func issuedReceipt() throws(AttackFault) -> [UInt8] {
    guard let issuer, let issuerPoint else { throw .notTried("it needs the issuer's key: --service") }
    do throws(CryptographyFailure) {
      return try issuer.signing { (key) throws(CryptographyFailure) in try receipt(by: &key, as: issuerPoint) }
    } catch { throw .cryptography }
  }

  private func receipt(by key: inout P256PrivateKey, as point: P256Point) throws(CryptographyFailure) -> [UInt8] {
    let chain = AuditChain(count: maximumInteger, head: Digest())
    return try AuditHome(of: point).receipt(for: chain, of: descriptor.deviceID, key: &key)
  }
}

extension AudienceID {
  /// Another device's id.
  fileprivate var flippingFirstBit: AudienceID { AudienceID([UInt8](bytes).flipped(at: 0).span)! }
}
