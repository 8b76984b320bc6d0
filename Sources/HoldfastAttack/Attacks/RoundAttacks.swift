import HoldfastCore
import HoldfastLinux

/// Attacks with whole rounds: replay, order, stale challenges, repetition.
extension Attack {
  static let rounds: [Attack] = [
    Attack(
      "challenge", "Eight connections are made, and their challenges compared.",
      due: "challenges that never repeat, and that have nothing in common"
    ) { (adversary) throws(AttackFault) in
      var seen: [Nonce] = []
      for _ in 0..<8 {
        let line = try adversary.connect()
        // A line may repeat a challenge that was not answered, so each is used up.
        let nonce = line.nonce
        let reply = try adversary.honestRound(on: line)
        guard case .verdict = reply else { return Finding(reply.text, isSound: false) }
        seen.append(nonce)
      }
      let distance =
        seen.indices.flatMap { index in
          seen[..<index].map { other in
            (0..<16).reduce(0) { $0 + (other[$1] ^ seen[index][$1]).nonzeroBitCount }
          }
        }.min() ?? 0
      // Of 28 pairs of random challenges, two have fewer than 24 bits of difference once in 10^11 times.
      return Finding("two of the challenges differ in \(distance) of 128 bits", isSound: distance >= 24)
    },
    replay("replay", "An honest M2 is sent again in the next round of the same connection.", onAnother: false),
    replay("replay-elsewhere", "An honest M2 is sent again on another connection.", onAnother: true),
    Attack(
      "answer-twice", "An honest M2 is sent twice, without waiting for the first answer.",
      due: text(of: [.deviceMismatch]) + ", for the second"
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      let message = try adversary.draft(on: line).message
      _ = line.send(message, by: adversary.answerDeadline)
      _ = adversary.exchange(message, on: line)
      // M1 of the next round stands between the two answers.
      return Finding(line.nextVerdict(by: adversary.answerDeadline), refused: [.deviceMismatch, .challengeExpired])
    },
    Attack(
      "stale-challenge", "After an honest round, its challenge is answered by another fresh M2.",
      due: text(of: [.deviceMismatch])
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      let first = try adversary.draft(on: line)
      let second = try adversary.draft(on: line)
      _ = adversary.exchange(first, on: line)
      try adversary.proceed(on: line)
      return Finding(adversary.exchange(second, on: line), refused: [.deviceMismatch])
    },
    Attack(
      "stale-after-refusal", "After a wrong proof, the same challenge is answered with the right one.",
      due: text(of: [.deviceMismatch])
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      let right = try adversary.draft(on: line)
      var wrong = try adversary.draft(on: line)
      wrong.deviceProof = MAC()
      _ = adversary.exchange(wrong, on: line)
      try adversary.proceed(on: line)
      return Finding(adversary.exchange(right, on: line), refused: [.deviceMismatch])
    },
    Attack(
      "exchanged-answers", "Two provers' answers change their connections.",
      due: text(of: [.deviceMismatch]) + ", for both", .crowd
    ) { (adversary) throws(AttackFault) in
      let (left, right) = (try adversary.connect(), try adversary.connect())
      let first = try adversary.draft(on: left)
      let second = try adversary.draft(on: right)
      let replies = [adversary.exchange(second, on: left), adversary.exchange(first, on: right)]
      return Finding(replies, refused: [.deviceMismatch])
    },
    Attack(
      "moved-seal", "The sealed request of an earlier round is put into an honest M2.", refused: [.malformed]
    ) { (adversary, line) throws(AttackFault) -> Draft in
      let earlier = try adversary.draft(on: line)
      _ = adversary.exchange(earlier, on: line)
      try adversary.proceed(on: line)
      var draft = try adversary.draft(on: line)
      draft.sealed = earlier.sealed
      return draft
    },
    Attack(
      "suppressed-verdict",
      "The verdict of an accepted request is held back, and the same request sent again with the whole token.",
      due: "accepted, sealed, as a repetition", .acceptance
    ) { (adversary) throws(AttackFault) in
      let request = adversary.request()
      let first = try adversary.honestRound(request)
      guard first == .verdict(.accepted, .right) else { return Finding(first.text, isSound: false) }
      let line = try adversary.connect()
      let reply = adversary.exchange(try adversary.draft(on: line, request: request), on: line)
      return Finding(reply.text, isSound: reply.isNoSecondRun)
    },
    Attack(
      "number-of-another-command", "The number of an accepted request is used for another command.",
      due: text(of: [.commandRefused]), .acceptance
    ) { (adversary) throws(AttackFault) in
      let number = adversary.number()
      let first = try adversary.honestRound(adversary.request(number: number))
      guard first == .verdict(.accepted, .right) else { return Finding(first.text, isSound: false) }
      let other = adversary.request(number: number, parameters: ["again"])
      let reply = try adversary.honestRound(other)
      return Finding(reply, refused: [.commandRefused])
    },
    Attack(
      "number-before-the-last", "After two accepted requests, the one before the last is sent again.",
      due: "internal, sealed, as a repetition", .acceptance
    ) { (adversary) throws(AttackFault) in
      let request = adversary.request()
      for plaintext in [request, adversary.request()] {
        let reply = try adversary.honestRound(plaintext)
        guard reply == .verdict(.accepted, .right) else { return Finding(reply.text, isSound: false) }
      }
      let reply = try adversary.honestRound(request)
      return Finding(reply.text, isSound: reply.isNoSecondRun)
    },
    Attack(
      "old-number", "A request has a number far below the highest accepted one.",
      due: "internal, sealed, as a repetition", .acceptance
    ) { (adversary) throws(AttackFault) in
      let reply = try adversary.honestRound(adversary.request(number: 1))
      return Finding(reply.text, isSound: reply == .verdict(.internal, .right, isRepetition: true))
    },
    Attack(
      "same-request-at-once", "Two connections send the same request at the same time.",
      due: "that at most one of them carries the request out", [.acceptance, .crowd]
    ) { (adversary) throws(AttackFault) in
      let request = adversary.request()
      let (left, right) = (try adversary.connect(), try adversary.connect())
      let first = try adversary.draft(on: left, request: request)
      let second = try adversary.draft(on: right, request: request)
      _ = left.send(first.message, by: adversary.answerDeadline)
      let replies = [
        adversary.exchange(second, on: right), first.reply(left.receive(by: adversary.answerDeadline)),
      ]
      let runs = replies.count { $0 == .verdict(.accepted, .right) }
      return Finding("the request was carried out \(runs) times", isSound: runs <= 1)
    },
  ]

  /// Makes the replay of an M2, twice.
  private static func replay(_ id: String, _ did: String, onAnother: Bool) -> Attack {
    Attack(id, did, due: text(of: [.deviceMismatch])) { (adversary) throws(AttackFault) in
      let (draft, kept) = try adversary.exchangeDraft(keepingLine: !onAnother)
      var replies: [Reply] = []
      for _ in 0..<2 {
        let line: Line
        if let kept {
          line = kept
          try adversary.proceed(on: line)
        } else {
          line = try adversary.connect()
        }
        let reply = adversary.exchange(draft, on: line)
        replies.append(reply)
        if !reply.refuses(with: [.deviceMismatch]) || reply == .closed { break }
      }
      return Finding(replies, refused: [.deviceMismatch])
    }
  }
}

extension Adversary {
  /// Sends an honest M2 on a connection, which ends unless it is kept: RFCOMM has one at a time.
  fileprivate mutating func exchangeDraft(keepingLine: Bool) throws(AttackFault) -> (Draft, Line?) {
    let line = try connect()
    let draft = try draft(on: line)
    _ = exchange(draft, on: line)
    return (draft, keepingLine ? line : nil)
  }
}

extension Reply {
  /// Whether the device did not carry the request out in this round.
  fileprivate var isNoSecondRun: Bool {
    switch self {
    case .verdict(.accepted, let seal, let isRepetition): seal == .right && isRepetition
    case .verdict(let status, let seal, _): seal == (status.needsAuthentication ? .right : seal)
    case .closed: true
    default: false
    }
  }
}

extension Line {
  /// Receives messages up to the next one that is no challenge, at most four.
  func nextVerdict(by deadline: Deadline) -> Reply {
    for _ in 0..<4 {
      let reply = Reply(receive(by: deadline))
      if reply != .challenge { return reply }
    }
    return .challenge
  }
}
