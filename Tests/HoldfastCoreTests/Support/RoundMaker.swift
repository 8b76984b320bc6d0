import TestSupport

import HoldfastCore

/// Makes rounds for the policy's rules, at first one that is accepted, and judges them.
struct RoundMaker {
  /// The facts by which a round is judged. They cannot be copied, so a maker keeps the changes that lead to them.
  struct Facts: ~Copyable {
    var round: AppraisalInput
    var ledger: LedgerSnapshot
  }

  private var changes: [(inout Facts) -> Void] = []

  /// A round of a token that was issued at 1000 and expires at 9000. The device's clock shows 2000, its floor 1500.
  var facts: Facts {
    var facts = Facts(
      round: .accepted(),
      ledger: LedgerSnapshot(
        clockFloor: 1500, generationFloor: 3, replayRoom: ReplayRoom(recordCount: 0, capacity: 8, nonceQuota: 2)))
    (facts.round.issuedAt, facts.round.expires, facts.round.realClock) = (1000, 9000, 2000)
    (facts.round.generation, facts.round.version) = (3, AppVersion(major: 1, minor: 2, patch: 3))
    for change in changes { change(&facts) }
    return facts
  }

  /// The contents of a ``Decision``.
  struct Verdict {
    let status: Status
    let notice: Notice
    let clockFloor: UInt64
    let generationFloor: UInt64?
    let uses: UseRecord?
    let keepsNonce: Bool
    let request: RequestRecord?
    let isRepetition: Bool
    let attempt: CodeAttempt?
  }

  var decision: Verdict { facts.decision }
  var status: Status { decision.status }

  /// The same round, changed.
  func with(_ change: @escaping (inout Facts) -> Void) -> RoundMaker {
    var other = self
    other.changes.append(change)
    return other
  }

  /// A compatibility round that is accepted.
  static var compatibility: RoundMaker {
    RoundMaker().with { ($0.round.allowsCompatibility, $0.round.compatibilityNonce) = (true, TypedBytes()) }
  }

  /// A round with a numbered request.
  static func numbered(_ number: UInt64, _ digest: FixedBytes<16> = TypedBytes()) -> RoundMaker {
    RoundMaker().with { ($0.round.requestNumber, $0.round.requestDigest) = (number, digest) }
  }
}

extension RoundMaker.Facts {
  var decision: RoundMaker.Verdict {
    var decision = Decision()
    decision.decide(round, against: ledger)
    return RoundMaker.Verdict(
      status: decision.status, notice: decision.notice, clockFloor: decision.clockFloor,
      generationFloor: decision.generationFloor, uses: decision.uses, keepsNonce: decision.keepsNonce,
      request: decision.request, isRepetition: decision.isRepetition, attempt: decision.attempt)
  }
  var status: Status { decision.status }
}
