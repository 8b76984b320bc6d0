import HoldfastCore

/// One way in which an impostor deceives a prover.
package struct Deception: Sendable {
  /// The identifier, which stays the same.
  package let id: String
  /// The impostor's action: one sentence.
  package let did: String
  /// The reaction of a sound prover.
  package let due: String
  let play: @Sendable (Stage) -> DeceptionFinding

  private init(_ id: String, _ did: String, due: String, play: @escaping @Sendable (Stage) -> DeceptionFinding) {
    (self.id, self.did, self.due, self.play) = (id, did, due, play)
  }
}

/// The observation of a deception.
struct DeceptionFinding {
  let observed: String
  let judgement: Judgement

  init(_ observed: String, _ judgement: Judgement) { (self.observed, self.judgement) = (observed, judgement) }
}

/// The result of one connection.
package struct DeceptionResult: Sendable {
  /// The deception.
  package let deception: Deception
  /// The reaction that was seen.
  package let observed: String
  /// The judgement.
  package let judgement: Judgement
}

extension Deception {
  /// All deceptions, in the order in which provers get them.
  package static let all: [Deception] = challenges + verdicts + rounds

  /// First messages to which a prover sends nothing.
  private static let challenges: [Deception] = [
    first("another-device", "The challenge is that of another device.") { $0.makeChallenge(device: DeviceID()) },
    first("another-key", "The challenge names another key of the device.") { $0.makeChallenge(keyID: KeyID()) },
    changed("another-version", "The challenge is of another version of the protocol.") {
      [$0[0], $0[1], 2] + $0.dropFirst(3)
    },
    changed("truncated-challenge", "The last byte of the challenge is cut off.") { [UInt8]($0.dropLast()) },
    changed("extended-challenge", "A byte follows the challenge.") { $0 + [0] },
    changed("long-challenge-head", "The head of the challenge has more bytes than it needs.") {
      [0x98, 0x07] + $0.dropFirst()
    },
    first("garbage", "4,096 bytes of garbage are sent in place of the challenge.") { _ in
      [UInt8](repeating: 0xff, count: 4096)
    },
    first("early-acceptance", "An acceptance is sent in place of the challenge.") { _ in [0x83, 3, 0, 0xf6] },
    first("early-denial", "A denial that needs a seal is sent in place of the challenge.") { _ in [0x83, 3, 11, 0xf6] },
    Deception(
      "oversize-challenge", "A message of more than 4,096 bytes is sent in place of the challenge.", due: nothing
    ) {
      stage in
      let bytes = stage.makeChallenge() + [UInt8](repeating: 0, count: 8000)
      stage.write(raw: (stage.isPackets ? [] : [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xff)]) + bytes)
      return stage.expectNothing()
    },
  ]

  /// Answers to M2 that no prover believes.
  private static let verdicts: [Deception] = [
    verdict("forged-acceptance", "M2 is answered with an acceptance without a seal.") { _ in [0x83, 3, 0, 0xf6] },
    verdict("forged-seal", "M2 is answered with an acceptance whose seal is invented.") { _ in
      [0x83, 3, 0, 0x58, 40] + [UInt8](repeating: 7, count: 40)
    },
    verdict("reflected-seal", "M2 is answered with an acceptance whose seal is that of the request.") { message in
      var verdict: [UInt8] = []
      if let proof = try? ProofMessage(message.span), case .session(_, let sealed) = proof.form {
        VerdictMessage.encode(.accepted, sealed: sealed, into: &verdict)
      }
      return verdict
    },
    verdict("empty-seal", "M2 is answered with an acceptance whose seal is empty.") { _ in [0x83, 3, 0, 0x40] },
    verdict("forged-denial", "M2 is answered with a denial that needs a seal and has none.") { _ in [0x83, 3, 11, 0xf6]
    },
    verdict("forged-mismatch", "M2 is answered with integrityMismatch without a seal.") { _ in [0x83, 3, 5, 0xf6] },
    verdict("unknown-status", "M2 is answered with a status that does not exist.") { _ in [0x83, 3, 0x18, 99, 0xf6] },
    verdict("truncated-verdict", "M2 is answered with a verdict that is cut short.") { _ in [0x83, 3] },
    verdict("extended-verdict", "M2 is answered with an acceptance and one byte more.") { _ in [0x83, 3, 0, 0xf6, 0] },
    verdict("long-verdict-head", "M2 is answered with an acceptance that is not deterministic.") { _ in
      [0x98, 3, 3, 0, 0xf6]
    },
    verdict("garbage-verdict", "M2 is answered with 4,096 bytes of garbage.") { _ in
      [UInt8](repeating: 0xff, count: 4096)
    },
    verdict("returned-answer", "M2 is sent back.") { $0 },
  ]

  /// Deceptions with several messages, with none, or with too many.
  private static let rounds: [Deception] = [
    Deception(
      "unknown-token", "Every M2 is answered with tokenUnknown.",
      due: "a second M2 with the whole token, and no third"
    ) { stage in
      var answers: [[UInt8]] = []
      for _ in 0..<4 {
        guard stage.send(stage.makeChallenge()), case .message(let bytes) = stage.receive() else { break }
        answers.append(bytes)
        stage.send([0x83, 3, 4, 0xf6])
      }
      guard !answers.isEmpty else { return .strange }
      let isWhole = answers.dropFirst().allSatisfy {
        (try? ProofMessage($0.span))?.encoding ?? .reference != .reference
      }
      return DeceptionFinding("\(answers.count) times M2", answers.count <= 2 && isWhole ? .sound : .unsound)
    },
    Deception(
      "same-challenge", "After tokenUnknown, the same challenge comes again.",
      due: "no M2, or one with other random bytes"
    ) { stage in
      let challenge = stage.makeChallenge()
      stage.send(challenge)
      guard case .message(let first) = stage.receive() else { return .strange }
      stage.send([0x83, 3, 4, 0xf6])
      stage.send(challenge)
      guard case .message(let second) = stage.receive() else {
        return DeceptionFinding("no second M2", .sound)
      }
      // The impostor compares the random bytes of all messages.
      return DeceptionFinding("another M2", first == second ? .unsound : .sound)
    },
    Deception(
      "flood", "Two thousand challenges are sent at once.", due: "at most one M2, and the end of the connection"
    ) { stage in
      var (sent, count) = (0, 0)
      while sent < 2000, stage.send(stage.makeChallenge()) { sent += 1 }
      while count < 3, case .message = stage.receive(milliseconds: 1000) { count += 1 }
      return DeceptionFinding("\(count) times M2", count <= 1 ? .sound : .unsound)
    },
    Deception("silence", "No challenge is sent.", due: "nothing, and the end of the connection in time") { stage in
      stage.expectNothing()
    },
    Deception("silence-after-answer", "M2 is not answered.", due: "the end of the connection in time") { stage in
      stage.send(stage.makeChallenge())
      guard case .message = stage.receive() else { return .strange }
      return stage.expectNothing()
    },
    Deception("unfinished-challenge", "A challenge begins and never ends.", due: nothing) { stage in
      guard !stage.isPackets else { return DeceptionFinding("", .notTried("packets arrive whole")) }
      stage.write(raw: [0, 60, 0x87, 1])
      return stage.expectNothing()
    },
    Deception("end", "The connection is ended at once.", due: nothing) { _ in DeceptionFinding("nothing", .sound) },
  ]

  private static let nothing = "nothing, and no acceptance"

  private static func first(
    _ id: String, _ did: String, _ message: @escaping @Sendable (Stage) -> [UInt8]
  ) -> Deception {
    Deception(id, did, due: nothing) { stage in
      stage.send(message(stage))
      return stage.expectNothing()
    }
  }

  private static func changed(
    _ id: String, _ did: String, _ change: @escaping @Sendable ([UInt8]) -> [UInt8]
  ) -> Deception {
    first(id, did) { change($0.makeChallenge()) }
  }

  /// Makes a deception that answers an honest M2, and then offers another challenge.
  private static func verdict(
    _ id: String, _ did: String, _ verdict: @escaping @Sendable ([UInt8]) -> [UInt8]
  ) -> Deception {
    Deception(id, did, due: "no further M2, and no acceptance") { stage in
      stage.send(stage.makeChallenge())
      guard case .message(let bytes) = stage.receive() else { return .strange }
      stage.send(verdict(bytes))
      stage.send(stage.makeChallenge())
      return stage.expectNothing()
    }
  }
}

extension DeceptionFinding {
  /// The finding about a peer that does not answer a right challenge.
  fileprivate static let strange = DeceptionFinding(
    "", .notTried("the prover sent no M2: is it enrolled for this device?"))
}

extension Stage {
  /// Judges a prover that must not send anything.
  fileprivate func expectNothing() -> DeceptionFinding {
    switch receive() {
    case .message(let bytes): DeceptionFinding("a message of \(bytes.count) bytes", .unsound)
    case .closed: DeceptionFinding("nothing, and the end of the connection", .sound)
    case .silence: DeceptionFinding("nothing", .sound)
    }
  }
}
