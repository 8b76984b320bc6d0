import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport

/// Attacks of strangers: guesses, silence, floods, late answers.
extension Attack {
  static let strangers: [Attack] = [
    guess("guessed-reference", "Tokens are asked for by references that were drawn at random.") { (random) in
      (try? random.fixedBytes() as FixedBytes<16>) ?? FixedBytes()
    },
    guess("zero-reference", "A token is asked for by a reference of zeros.") { (_) in FixedBytes() },
    owner("guessed-activation", "An activation is begun with a code that was drawn at random.", for: .activation),
    owner("guessed-unlocking", "An unlocking is tried with a code that was drawn at random.", for: .unlock),
    bare("zero-activation-mac", "An activation is begun with a MAC of zeros.") { (point) in
      ActivationMessage.activate(point, mac: MAC())
    },
    bare("zero-unlocking-mac", "An unlocking is tried with a MAC of zeros.") { (_) in
      ActivationMessage.unlock(mac: MAC())
    },
    bare("confirmation-of-nothing", "An activation is confirmed that was never begun.") { (_) in
      ActivationMessage.confirm(mac: MAC())
    },
    Attack(
      "failures", "Twelve wrong proofs are sent on one connection.", due: "from the tenth on, an answer after a second"
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      var fastest = UInt64.max
      for count in 1...12 {
        var draft = try adversary.draft(on: line)
        draft.deviceProof = MAC()
        var stopwatch = Stopwatch()
        let reply = adversary.exchange(draft, on: line)
        // On a busy host, some take longer by themselves.
        if count >= 10 { fastest = min(fastest, stopwatch.lap() / 1_000_000) }
        // A device may also end the connection.
        if reply == .closed { return Finding("the end of the connection after \(count)", isSound: true) }
        guard reply.refuses(with: [.deviceMismatch]) else { return Finding(reply.text, isSound: false) }
        if count < 12 { try adversary.proceed(on: line) }
      }
      return Finding("the fastest answer from the tenth on came after \(fastest) ms", isSound: fastest >= 800)
    },
    Attack(
      "silent-peers", "Eight peers connect and say nothing, and an honest prover comes.", due: "an honest round",
      .crowd
    ) { (adversary) throws(AttackFault) in try adversary.serves(besides: 8) },
    Attack(
      "held-places", "Seventy peers hold their places without a proof, and an honest prover comes.",
      due: "an honest round", .crowd
    ) { (adversary) throws(AttackFault) in
      guard adversary.endpoint.scheme.radio == nil else { throw .notTried("an adapter has few channels") }
      return try adversary.serves(besides: 70)
    },
    Attack(
      "places-of-one-token", "One token keeps seventy places, each behind an accepted round, and another prover comes.",
      due: "that the other one is accepted", [.crowd, .acceptance, .issuer]
    ) { (adversary) throws(AttackFault) in
      guard adversary.endpoint.scheme.radio == nil else { throw .notTried("an adapter has few channels") }
      var held: [Line] = []
      let end = Deadline(afterMilliseconds: 30_000)
      while held.count < 70, !end.hasPassed, let line = try? adversary.connect(),
        case .some(.some) = try? adversary.acceptedRound(on: line)
      { held.append(line) }
      defer { withExtendedLifetime(held) {} }
      guard held.count > 4 else { throw .notTried("the device has few places, or lets few be held") }
      let reply = try adversary.presentOnceNotBusy()
      return Finding(reply.text, isSound: reply == .verdict(.accepted, .right))
    },
    Attack(
      "flood", "Two hundred peers connect and leave at once, and an honest prover comes.", due: "an honest round",
      .connections
    ) { (adversary) throws(AttackFault) in
      for _ in 0..<(adversary.endpoint.scheme.radio == nil ? 200 : 5) {
        _ = try? Connection.connect(to: adversary.endpoint, timeoutMilliseconds: 100)
      }
      return try adversary.serves(besides: 0)
    },
    Attack(
      LateAnswer.attackID, "An honest M2 is sent 31 seconds after its challenge, on a line 36.",
      due: text(of: [.challengeExpired])
    ) { (adversary) throws(AttackFault) in
      let waiting = adversary.waiting
      adversary.waiting = nil
      // A stranger that waits loses its place when others come.
      if let reply = waiting?.send(by: adversary.answerMilliseconds), reply != .closed { return .ofLateAnswer(reply) }
      return .ofLateAnswer(try adversary.prepareLateAnswer().send(by: adversary.answerMilliseconds))
    },
  ]

  private static func guess(
    _ id: String, _ did: String, _ reference: @escaping @Sendable (inout SystemRandom) -> FixedBytes<16>
  ) -> Attack {
    Attack(id, did, due: text(of: [.tokenUnknown])) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      var replies: [Reply] = []
      for count in 0..<3 {
        if count > 0 { try adversary.proceed(on: line) }
        let reference = [UInt8](reference(&adversary.random).bytes)
        let reply = adversary.exchange(
          try adversary.draft(on: line, as: adversary.persona, .reference, reference), on: line)
        replies.append(reply)
        if !reply.refuses(with: [.tokenUnknown]) || reply == .closed { break }
      }
      return Finding(replies, refused: [.tokenUnknown])
    }
  }

  /// Makes an attack with a random code of the device's owner.
  private static func owner(_ id: String, _ did: String, for purpose: OneUseCode.Purpose) -> Attack {
    Attack(id, did, due: "otpRejected, without a seal") { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      let code: OneUseCode
      do throws(RandomFailure) { code = try .random(using: &adversary.random) } catch { throw .cryptography }
      var session = ActivationSession(
        code: code, for: purpose, cryptography: OpenSSLCryptography(), random: SystemRandom())
      do throws(ActivationFault) { _ = try session.receive(line.challenge.span) } catch { throw .cryptography }
      return Finding(codeRefusal: adversary.exchange([UInt8](session.outgoing.bytes), on: line))
    }
  }

  private static func bare(
    _ id: String, _ did: String, _ message: @escaping @Sendable (P256Point) -> ActivationMessage
  ) -> Attack {
    Attack(id, did, due: "otpRejected or challengeExpired, without a seal") { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      var bytes: [UInt8] = []
      message(adversary.descriptor.publicPoint).encode(into: &bytes)
      return Finding(codeRefusal: adversary.exchange(bytes, on: line))
    }
  }
}

extension Finding {
  /// Judges the refusal of an owner's code, which never has a seal: the peer has no token. A device without users may know no such
  /// message.
  fileprivate init(codeRefusal reply: Reply) {
    let isSound: Bool =
      switch reply {
      case .verdict(let status, let seal, _):
        [.otpRejected, .malformed, .challengeExpired].contains(status) && seal == .absent
      case .closed: true
      default: false
      }
    self.init(reply.text, isSound: isSound)
  }
}

extension Adversary {
  /// Holds connections, and looks whether an honest prover is served.
  fileprivate mutating func serves(besides count: Int) throws(AttackFault) -> Finding {
    var held: [Connection] = []
    for _ in 0..<count {
      guard let connection = try? Connection.connect(to: endpoint, timeoutMilliseconds: 200) else { break }
      held.append(connection)
    }
    defer { withExtendedLifetime(held) {} }
    let (isServed, reply) = isServed()
    return Finding("an honest prover got \(reply)", isSound: isServed)
  }

  /// Presents a right token of an invented prover, once more after two seconds if the device is busy: it may limit a token's rounds.
  fileprivate mutating func presentOnceNotBusy() throws(AttackFault) -> Reply {
    do throws(AttackFault) {
      let reply = try present(.cose, isTrusted: true)
      if case .verdict(.busy, _, _) = reply {} else { return reply }
    } catch {
      guard case .noChallenge(.verdict(.busy, _, _)) = error else { throw error }
    }
    _ = poll(nil, 0, 2000)
    return try present(.cose, isTrusted: true)
  }

  /// Makes an honest M2 that will be sent too late.
  mutating func prepareLateAnswer() throws(AttackFault) -> LateAnswer {
    let line = try connect()
    return LateAnswer(line: line, message: try draft(on: line).message, isOnLine: isLine)
  }
}

/// An answer that waits until its challenge has expired.
struct LateAnswer {
  static let attackID = "late-answer"
  /// The time after which it is sent. A device waits for 30 seconds.
  private static let waitMilliseconds = 31_000
  /// The same on a line: the clock of an emulated board is some percent slow.
  private static let lineWaitMilliseconds = 36_000

  private let line: Line
  private let message: [UInt8]
  private let due: Deadline

  init(line: Line, message: [UInt8], isOnLine: Bool) {
    (self.line, self.message) = (line, message)
    due = Deadline(afterMilliseconds: isOnLine ? Self.lineWaitMilliseconds : Self.waitMilliseconds)
  }

  /// Sends the answer when it is time, or once the device has said that the challenge expired, and returns what follows.
  ///
  /// It reads what comes meanwhile, since a board discards what nobody reads.
  func send(by answerMilliseconds: Int) -> Reply {
    while !due.hasPassed, case .message(let bytes) = line.receive(by: due) {
      if Reply(.message(bytes)) == .verdict(.challengeExpired, .absent) { break }
    }
    let deadline = Deadline(afterMilliseconds: answerMilliseconds)
    var reply = Reply(line.exchange(message, by: deadline))
    // Its challenge was replaced, or is about to be.
    for _ in 0..<3 where reply == .challenge || reply == .verdict(.challengeExpired, .absent) {
      let next = Reply(line.receive(by: Deadline(afterMilliseconds: min(answerMilliseconds, 2500))))
      if next == .silence || next == .closed { break }
      reply = next
    }
    return reply
  }
}

extension Finding {
  fileprivate static func ofLateAnswer(_ reply: Reply) -> Finding {
    if reply == .challenge { return Finding("another challenge", isSound: true) }
    return Finding(reply, refused: [.challengeExpired, .deviceMismatch])
  }
}
