import Testing

import HoldfastCore

@Suite struct RefusalTests {
  private let good = RoundMaker()

  @Test func `each cause of commandRefused is named, the first that applies`() {
    func refusal(_ change: @escaping (inout RoundMaker.Facts) -> Void) -> Refusal? {
      let decision = good.with(change).decision
      #expect(decision.status == .commandRefused)
      return decision.notice.refusal
    }
    #expect(refusal { $0.round.factors = nil } == .notInPolicy)
    #expect(
      refusal { ($0.round.compatibilityNonce, $0.round.allowsCompatibility) = (TypedBytes(), false) } == .notInPolicy)
    #expect(refusal { $0.round.isCommandInToken = false } == .notInToken)
    #expect(refusal { $0.round.isAnotherUsersCode = true } == .anotherUser)
    #expect(
      refusal { ($0.round.factors, $0.round.longestParameterLength) = ([.device, .seal], 33) } == .parameterTooLong)
    #expect(refusal { ($0.round.factors, $0.round.isCommandInToken) = (nil, false) } == .notInPolicy)
    #expect(refusal { ($0.round.isCommandInToken, $0.round.isAnotherUsersCode) = (false, true) } == .notInToken)
    #expect(good.decision.notice.refusal == nil)
  }

  @Test func `every word is short ASCII, unlike the others, and reads back`() {
    var words: Set<String> = []
    for refusal in Refusal.allCases {
      let word = refusal.word.description
      #expect(word.utf8.count <= 17 && word.allSatisfy { $0.isASCII && $0.isLetter })
      words.insert(word)
      let (bytes, shorter) = (Array(word.utf8), Array(word.utf8.dropLast()))
      let (read, other) = (Refusal(word: bytes.span), Refusal(word: shorter.span))
      #expect(read == refusal && other == nil)
    }
    #expect(words.count == Refusal.allCases.count)
    let none = Refusal(word: Span())
    #expect(none == nil)
  }

  @Test func `a lock that does not know a command says so, and no more than that`() throws {
    struct Bolt: Lock {
      var current = LockState.locked
      mutating func move(to target: LockState) throws(ActuatorFailure) { throw ActuatorFailure() }
    }
    var lock = LockActuator(Bolt())
    let commands: [(StaticString, Bool)] = [("pump", true), ("", true), ("unlock ", true), ("unlock", false)]
    for (command, isUnknown) in commands {
      let request = Request(command: BoundedText(command))
      var result = ResultBuffer()
      do throws(ActuatorFailure) {
        try lock.perform(request, result: &result)
        Issue.record("\(command)")
      } catch { #expect(error.isUnknownCommand == isUnknown) }
      let isKnown = lock.carriesOut(request.command)
      #expect(isKnown == !isUnknown, "\(command)")
    }
  }

  @Test func `a lock says what it has done`() throws {
    struct Bolt: Lock {
      var current = LockState.locked
      mutating func move(to target: LockState) { current = target }
    }
    var lock = LockActuator(Bolt())
    let answers: [(StaticString, StaticString)] = [
      ("status", "locked"), ("unlock", "unlocked"), ("status", "unlocked"), ("lock", "locked"), ("status", "locked"),
      ("configure", "configured"), ("open-safe", "safe opened"),
    ]
    for (command, answer) in answers {
      let request = Request(command: BoundedText(command))
      let isKnown = lock.carriesOut(request.command)
      #expect(isKnown, "\(command)")
      var result = ResultBuffer()
      try lock.perform(request, result: &result)
      #expect(String(decoding: Array(result.bytes), as: UTF8.self) == "\(answer)")
    }
  }

  @Test func `only what changes something durable is recorded`() {
    func isRecorded(_ maker: RoundMaker) -> Bool {
      let facts = maker.facts
      var decision = Decision()
      decision.decide(facts.round, against: facts.ledger)
      return decision.isRecorded(over: facts.ledger, facts.round)
    }
    #expect(isRecorded(good))
    for change: (inout RoundMaker.Facts) -> Void in [
      { $0.round.generation = 2 }, { $0.round.expires = 1 },
      { $0.round.limits.minimumVersion = AppVersion(major: 9, minor: 0, patch: 0) },
      { $0.round.maximumUses = 0 }, { $0.round.integrity = .wrong }, { $0.round.factors = nil },
      { $0.round.factors = .all },
      { ($0.round.maximumUses, $0.ledger.replayRoom) = (1, ReplayRoom(recordCount: 8, capacity: 8, nonceQuota: 2)) },
      { $0.ledger.isIssuerTrusted = false },
    ] {
      let denied = good.with(change)
      #expect(denied.status != .accepted && !isRecorded(denied))
      // A fresh token moves the floor, whatever becomes of the round; one whose issuer is trusted no longer does not.
      let isTrusted = denied.facts.ledger.isIssuerTrusted
      #expect(
        isRecorded(denied.with { ($0.round.issuedAt, $0.round.expires) = (1501, max($0.round.expires, 1502)) })
          == isTrusted)
    }
    let nonce = RoundMaker.compatibility.with { $0.round.isCommandInToken = false }
    #expect(nonce.status == .commandRefused && isRecorded(nonce))
    let full = nonce.with { $0.ledger.nonceCount = 2 }
    #expect(full.status == .busy && !isRecorded(full))
    let again = nonce.with { $0.ledger.isNonceUsed = true }
    #expect(again.status == .deviceMismatch && !isRecorded(again))
  }
}
