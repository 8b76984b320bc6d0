import HoldfastCore

/// A policy in memory, at first the simulated lock's.
package final class TestPolicy: Policy {
  package var rules: [BoundedText<32>: CommandRule] = [
    "lock": CommandRule(factors: [.integrity, .device]),
    "unlock": CommandRule(factors: [.integrity, .device]),
    "status": CommandRule(factors: .device),
  ]
  package var limits = TokenLimits()
  package var commonFactors: Factors = .device
  package var codeLimits = CodeLimits()
  package var acceptsUnsigned = false
  package var acceptsMAC = false
  package var acceptsDevelopment = false
  package var introducers: Set<KeyID> = []
  package var maximumIssueAdvanceSeconds: UInt64 = 400 * 86_400

  package init() {}

  package func mayIntroduce(_ issuer: KeyID) -> Bool { introducers.contains(issuer) }

  package func rule(for command: BoundedText<32>) -> CommandRule? { rules[command] }
}

extension AppraisalInput {
  /// Returns the facts of a session round that the rules accept: `unlock`, with right proofs and a signed token.
  package static func accepted() -> AppraisalInput {
    var round = AppraisalInput(
      token: AuthenticatedToken(), proofs: (.right, .right), request: Request(command: "unlock"), digest: TypedBytes(),
      policy: TestPolicy(), nonce: nil, realClock: testTime, monotonicMilliseconds: 0)
    (round.verifyingKey, round.tokenID) = (KeyID(filledWith: 5), TokenID(filledWith: 6))
    (round.issuedAt, round.expires, round.generation) = (testTime, testTime + 10, 1)
    return round
  }
}
