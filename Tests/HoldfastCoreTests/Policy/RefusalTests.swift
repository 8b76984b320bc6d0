import Testing

import HoldfastCore

@Suite struct RefusalTests {
  private let good = RoundMaker()

  @Test func `each cause of commandRefused is named, the first that applies`() {
    func refusal(_ change: (inout RoundMaker) -> Void) -> Refusal? {
      let decision = good.with(change).decision
      #expect(decision.status == .commandRefused)
      return decision.notice.refusal
    }
    #expect(refusal { $0.factors = nil } == .notInPolicy)
    #expect(refusal { ($0.nonce, $0.allowsCompatibility) = (FixedBytes(), false) } == .notInPolicy)
    #expect(refusal { $0.isCommandInToken = false } == .notInToken)
    #expect(refusal { $0.isAnotherUsersCode = true } == .anotherUser)
    #expect(refusal { ($0.factors, $0.longestParameterLength) = ([.device, .seal], 33) } == .parameterTooLong)
    #expect(refusal { ($0.factors, $0.isCommandInToken) = (nil, false) } == .notInPolicy)
    #expect(refusal { ($0.isCommandInToken, $0.isAnotherUsersCode) = (false, true) } == .notInToken)
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
    }
  }

  @Test func `only what changes something durable is recorded`() {
    func isRecorded(_ maker: RoundMaker) -> Bool {
      var decision = Decision()
      decision.decide(maker.round, against: maker.ledger.snapshot)
      return decision.isRecorded(over: maker.ledger.snapshot, maker.round)
    }
    #expect(isRecorded(good))
    for change: (inout RoundMaker) -> Void in [
      { $0.generation = 2 }, { $0.expires = 1 },
      { $0.limits.minimumVersion = AppVersion(major: 9, minor: 0, patch: 0) },
      { $0.maximumUses = 0 }, { $0.integrity = .wrong }, { $0.factors = nil }, { $0.factors = .all },
      { ($0.maximumUses, $0.ledger.replayRoom) = (1, ReplayRoom(recordCount: 8, capacity: 8, nonceQuota: 2)) },
      { $0.ledger.isIssuerTrusted = false },
    ] {
      let denied = good.with(change)
      #expect(denied.status != .accepted && !isRecorded(denied))
      // A fresh token moves the floor, whatever becomes of the round; one whose issuer is trusted no longer does not.
      let isTrusted = denied.ledger.isIssuerTrusted
      #expect(isRecorded(denied.with { ($0.issuedAt, $0.expires) = (1501, max($0.expires, 1502)) }) == isTrusted)
    }
    let nonce = RoundMaker.compatibility.with { $0.isCommandInToken = false }
    #expect(nonce.status == .commandRefused && isRecorded(nonce))
    let full = nonce.with { $0.ledger.nonceCount = 2 }
    #expect(full.status == .busy && !isRecorded(full))
    let again = nonce.with { $0.ledger.isNonceUsed = true }
    #expect(again.status == .deviceMismatch && !isRecorded(again))
  }
}
