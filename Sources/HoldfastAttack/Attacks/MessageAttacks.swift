import HoldfastCore
import HoldfastTransport

/// Attacks with messages that are not those of the protocol.
extension Attack {
  static let messages: [Attack] = [
    bytes("truncate-last", "The last byte of an honest M2 is cut off.") { $0.dropLast() },
    bytes("truncate-half", "The second half of an honest M2 is cut off.") { $0.prefix($0.count / 2) },
    bytes("truncate-first", "Only the first byte of an honest M2 is sent.") { $0.prefix(1) },
    bytes("extend", "A byte follows an honest M2.") { $0 + [0] },
    bytes("two-in-one", "Two honest messages are sent as one.") { $0 + $0 },
    bytes("long-array-head", "The head of M2 has more bytes than it needs.") { [0x98, 0x05] + $0.dropFirst() },
    bytes("indefinite-array", "M2 is an array of indefinite length.") { [0x9f] + $0.dropFirst() + [0xff] },
    bytes("long-type", "The type of M2 has more bytes than it needs.") { [0x85, 0x18, 0x02] + $0.dropFirst(2) },
    bytes("tagged-message", "M2 stands in a tag.") { [0xd9, 0xd9, 0xf7] + $0 },
    bytes("another-type", "M2 has the type of M3.") { [$0[0], 0x03] + $0.dropFirst(2) },
    bytes("more-elements", "M2 has a sixth element.") { [0x86] + $0.dropFirst() + [0xf6] },
    bytes("forged-verdict", "An acceptance is sent to the device in place of M2.") { _ in [0x83, 0x03, 0x00, 0xf6] },
    bytes("garbage", "4,096 bytes of garbage are sent in place of M2.") { _ in [UInt8](repeating: 0xff, count: 4096) },
    bytes("deep-nesting", "4,096 nested arrays are sent in place of M2.") { _ in
      [UInt8](repeating: 0x81, count: 4096)
    },
    bytes("huge-length", "M2 is an array of 2^64 - 1 elements.") { _ in [0x9b] + [UInt8](repeating: 0xff, count: 8) },
    Attack("returned-challenge", "The challenge itself is sent back.", refused: [.malformed]) {
      (_, line) throws(AttackFault) -> [UInt8] in line.challenge
    },
    proofLength("long-device-proof", "The device proof has 33 bytes.", [UInt8](repeating: 0, count: 33)),
    proofLength("empty-device-proof", "The device proof is empty.", []),
    head("flip-encoding", "The token is given an encoding that is not defined.", refused: [.malformed, .tokenInvalid]) {
      $0[18] = 0x03
    },
    head("flip-head-type", "The head of M2 is a map.", refused: [.malformed]) { $0[0] = 0xa3 },
    Attack(
      "oversize", "A message of more than 4,096 bytes is sent.", due: text(of: [.malformed]) + "; a line drops it"
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      let tail = [UInt8](repeating: 0, count: 8000)
      let message = try adversary.draft(on: line).message + tail
      let isPackets = adversary.endpoint.scheme.framing == .packets
      let prefix = isPackets ? [] : [UInt8(message.count >> 8), UInt8(message.count & 0xff)]
      line.write(raw: prefix + message)
      return adversary.dropped(on: line)
    },
    Attack(
      "after-malformed", "After a message that is not one, the adversary waits for another challenge.",
      due: "the end of the connection", .connections
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      let first = adversary.exchange([0x80], on: line)
      guard first.refuses(with: [.malformed]), first != .closed else { return Finding(first, refused: [.malformed]) }
      let reply = Reply(line.receive(by: adversary.answerDeadline))
      return Finding(reply.text, isSound: reply == .closed)
    },
    Attack(
      "empty-message", "A packet without bytes is sent.", due: text(of: [.malformed]), .packets
    ) { (adversary) throws(AttackFault) in
      guard adversary.endpoint.scheme.radio != .lowEnergy else {
        throw .notTried("Linux sends no empty packet over LE")
      }
      let line = try adversary.connect()
      line.write(raw: [])
      return Finding(line.nextVerdict(by: adversary.answerDeadline), refused: [.malformed])
    },
    Attack(
      "unfinished-message", "A message begins and never ends.", due: text(of: [.malformed]) + "; a line drops it",
      .stream
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      line.write(raw: [0x01, 0x00, 0x85, 0x02])
      return adversary.dropped(on: line)
    },
  ]

  /// Makes an attack with the bytes of an honest M2 changed.
  private static func bytes(
    _ id: String, _ did: String, _ change: @escaping @Sendable ([UInt8]) -> [UInt8]
  ) -> Attack {
    Attack(id, did, refused: [.malformed]) { (adversary, line) throws(AttackFault) -> [UInt8] in
      change(try adversary.draft(on: line).message)
    }
  }

  private static func bytes(
    _ id: String, _ did: String, _ change: @escaping @Sendable ([UInt8]) -> ArraySlice<UInt8>
  ) -> Attack {
    bytes(id, did) { [UInt8](change($0)) }
  }

  private static func head(
    _ id: String, _ did: String, refused statuses: [Status], _ change: @escaping @Sendable (inout [UInt8]) -> Void
  ) -> Attack {
    Attack(id, did, refused: statuses) { (adversary, line) throws(AttackFault) -> Draft in
      var draft = try adversary.draft(on: line)
      change(&draft.head)
      return draft
    }
  }

  /// Makes an attack with a device proof of another length.
  private static func proofLength(_ id: String, _ did: String, _ proof: [UInt8]) -> Attack {
    Attack(id, did, refused: [.malformed]) { (adversary, line) throws(AttackFault) -> [UInt8] in
      let draft = try adversary.draft(on: line)
      var message: [UInt8] = [0x85, 0x02]
      message.appendCBOR(bytes: draft.head.span)
      message.appendCBORNull()
      message.appendCBOR(bytes: proof.span)
      message.appendCBOR(bytes: draft.sealed.span)
      return message
    }
  }
}

extension Adversary {
  /// Waits for what follows bytes that are no message. A line that drops them may stay silent, or send a challenge.
  mutating func dropped(on line: Line) -> Finding {
    let reply = line.nextVerdict(by: Deadline(afterMilliseconds: isLine ? 2500 : max(answerMilliseconds, 13_000)))
    if isLine, reply == .silence || reply == .challenge { return Finding("the bytes were dropped", isSound: true) }
    return Finding(reply, refused: [.malformed, .challengeExpired])
  }
}
