import HoldfastCore
import HoldfastFormats

/// Attacks with the prover's own token: a bit in each part, its end, its encoding.
extension Attack {
  static let tokens: [Attack] = [
    Attack(
      "flip-token", "One bit in each part of the token is flipped, with proofs that fit.",
      due: text(of: [.tokenInvalid]) + ", for each"
    ) { (adversary) throws(AttackFault) in
      for (part, index) in TokenPart.places(in: adversary.token, adversary.encoding) {
        let line = try adversary.connect()
        let changed = adversary.token.flipped(at: index)
        let reply = adversary.exchange(try adversary.draft(on: line, token: changed, adversary.encoding), on: line)
        guard reply.refuses(with: [.tokenInvalid]) else {
          return Finding("with a flipped bit in \(part): \(reply.text)", isSound: false)
        }
      }
      return Finding("tokenInvalid, without a seal, for each", isSound: true)
    },
    Attack(
      "flip-token-in-flight", "One bit of the token is flipped in an honest M2.", refused: [.tokenInvalid]
    ) { (adversary, line) throws(AttackFault) -> Draft in
      var draft = try adversary.draft(on: line)
      draft.head = draft.head.flipped(at: draft.head.count - adversary.token.count / 2)
      return draft
    },
    token("truncated-token", "The last byte of the token is cut off.") { $0.removeLast() },
    token("extended-token", "A byte follows the token.") { $0.append($0.last == 0x40 ? 0 : 0x41) },
    token("empty-token", "The token is empty.", refused: [.tokenInvalid, .malformed]) { $0 = [] },
    Attack("token-as-other-encoding", "The token is given as one of the other encoding.", refused: [.tokenInvalid]) {
      (adversary, line) throws(AttackFault) -> Draft in
      try adversary.draft(on: line, token: adversary.token, adversary.encoding == .cose ? .jose : .cose)
    },
    Attack("re-encoded-token", "The token is encoded again, not deterministically.", refused: [.tokenInvalid]) {
      (adversary, line) throws(AttackFault) -> Draft in
      var token = adversary.token
      if adversary.encoding == .cose {
        // The head of the array of four, in two bytes.
        token.replaceSubrange(2..<3, with: [0x98, 0x04])
      } else {
        token.append(0x3d)
      }
      return try adversary.draft(on: line, token: token, adversary.encoding)
    },
  ]

  private static func token(
    _ id: String, _ did: String, refused statuses: [Status] = [.tokenInvalid],
    _ change: @escaping @Sendable (inout [UInt8]) -> Void
  ) -> Attack {
    Attack(id, did, refused: statuses) { (adversary, line) throws(AttackFault) -> Draft in
      var token = adversary.token
      change(&token)
      return try adversary.draft(on: line, token: token, adversary.encoding)
    }
  }
}
