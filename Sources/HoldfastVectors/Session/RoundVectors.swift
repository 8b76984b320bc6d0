import HoldfastCore

/// `SessionRound`: a whole round with every value that either side computes on the way.
///
/// Source: docs/protocol.md, Session. Each value is recomputed; then the prover's session and, where the vector leaves
/// nothing to the device's state, the device's session go through the round.
struct RoundVectors: ReplayableGroup {
  private let parties: Parties

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    parties = try Parties(group)
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let vector = try RoundVector(test.node)
    do throws(Refusal) {
      let token = try vector.openToken(for: parties)
      try vector.checkChallenge(for: parties)
      try vector.checkMessages()
      try vector.checkProverSession(for: parties)
      try vector.checkDeviceSession(for: parties, token: token)
      return .accepted
    } catch { return .refused(error.reason) }
  }
}
