import HoldfastCore
import HoldfastDevice
import HoldfastTransport
import TestSupport
import Testing

struct ServerLogTests {
  private let clock = TestClock()
  private let log: ServerLog<TestClock>
  private let someone = Peer.process(userID: 1000, processID: 42)

  init() { log = ServerLog(clock: clock) }

  private func judged(_ connection: UInt64, _ status: Status, token: UInt8 = 1) -> ServerNotice {
    let round = AuditedRound(status: status, command: BoundedText("unlock"), tokenID: token)
    return .judged(JudgedRound(connection: connection, status: status, event: .round(round)))
  }

  /// The totals among some entries.
  private func totals(_ entries: [ServerLogEntry]) -> [StrangerTotals] {
    entries.compactMap { if case .strangers(let totals) = $0 { totals } else { nil } }
  }

  private func rounds(_ entries: [ServerLogEntry]) -> [RoundEntry] {
    entries.compactMap { if case .round(let entry) = $0 { entry } else { nil } }
  }

  @Test func `a stranger is an entry at once, and a flood of them one a minute, which counts everything`() {
    #expect(log.entries(for: .connected(connection: 1, someone)).isEmpty)
    #expect(log.entries(for: .connected(connection: 2, nil)).isEmpty)
    let first = totals(log.entries(for: .answered(connection: 1, .malformed)))
    #expect(first.count == 1)
    #expect(first.first?.answers[.malformed] == 1)
    #expect(first.first?.peer == someone)
    #expect(first.first?.milliseconds == nil)
    for _ in 0..<20_000 {
      #expect(log.entries(for: .answered(connection: 1, .tokenInvalid)).isEmpty)
      clock.advance(milliseconds: 2)
    }
    #expect(log.entries(for: .answered(connection: 2, .deviceMismatch)).isEmpty)
    #expect(log.entries(for: .busy).isEmpty)
    #expect(log.dueEntries().isEmpty)
    clock.advance(milliseconds: 19_999)
    #expect(log.dueEntries().isEmpty)
    clock.advance(milliseconds: 1)
    let second = totals(log.dueEntries())
    #expect(second.count == 1)
    #expect(second.first?.answers[.tokenInvalid] == 20_000)
    #expect(second.first?.answers[.deviceMismatch] == 1)
    #expect(second.first?.connectionCount == 2)
    #expect(second.first?.peer == nil)
    #expect(second.first?.sentAwayCount == 1)
    #expect(second.first?.milliseconds == 60_000)
    #expect(log.dueEntries(isEnding: true).isEmpty)
  }

  @Test func `a command that the actuator does not know is one entry, however often it is asked for`() {
    for (command, count) in [("fly", 1), ("fly", 0), ("swim", 1), ("fly", 0)] {
      let notice = ServerNotice.unknownToActuator(connection: 1, command: BoundedText(command)!)
      #expect(log.entries(for: notice).count == count)
    }
  }

  @Test func `a connection counts once in each minute, however often it is answered`() {
    _ = log.entries(for: .connected(connection: 1, nil))
    for _ in 0..<3 {
      for _ in 0..<5 { _ = log.entries(for: .answered(connection: 1, .malformed)) }
      clock.advance(milliseconds: 60_000)
      #expect(totals(log.dueEntries()).map(\.connectionCount) == [1])
    }
  }

  @Test func `two hundred thousand connections leave nothing behind`() {
    for connection in UInt64(1)...200_000 {
      _ = log.entries(for: .connected(connection: connection, someone))
      _ = log.entries(for: .answered(connection: connection, .tokenUnknown))
      _ = log.entries(for: .disconnected(connection: connection))
    }
    let entries = totals(log.dueEntries(isEnding: true))
    #expect(entries.map { $0.answers[.tokenUnknown] } == [199_999])
    #expect(entries.map(\.connectionCount) == [199_999])
  }

  @Test func `a token that the device has forgotten is no stranger's, once it comes whole`() {
    _ = log.entries(for: .connected(connection: 1, someone))
    #expect(log.entries(for: .answered(connection: 1, .tokenUnknown)).isEmpty)
    let entries = rounds(log.entries(for: judged(1, .accepted)))
    #expect(entries.map(\.isOfForgottenToken) == [true])
    #expect(entries.map(\.peer) == [someone])
    #expect(rounds(log.entries(for: judged(1, .accepted))).map(\.isOfForgottenToken) == [false])
    #expect(log.dueEntries(isEnding: true).isEmpty)
  }

  @Test func `an unknown token after which nothing comes is a stranger's`() {
    _ = log.entries(for: .connected(connection: 1, someone))
    #expect(log.entries(for: .answered(connection: 1, .tokenUnknown)).isEmpty)
    #expect(totals(log.entries(for: .answered(connection: 1, .tokenUnknown))).map { $0.answers[.tokenUnknown] } == [2])
    _ = log.entries(for: .connected(connection: 2, someone))
    #expect(log.entries(for: .answered(connection: 2, .tokenUnknown)).isEmpty)
    _ = log.entries(for: .disconnected(connection: 2))
    #expect(totals(log.dueEntries(isEnding: true)).map { $0.answers[.tokenUnknown] } == [1])
    // So is that of a connection which is there until the server ends.
    _ = log.entries(for: .connected(connection: 3, someone))
    #expect(log.entries(for: .answered(connection: 3, .tokenUnknown)).isEmpty)
    #expect(totals(log.dueEntries(isEnding: true)).map { $0.answers[.tokenUnknown] } == [1])
  }

  @Test func `each accepted round is an entry`() {
    for _ in 0..<1000 { #expect(rounds(log.entries(for: judged(1, .accepted))).count == 1) }
  }

  @Test func `repetitions of an accepted request are one entry a minute`() {
    var round = AuditedRound(status: .accepted, command: BoundedText("unlock"), tokenID: 1)
    round.isRepetition = true
    let repetition = ServerNotice.judged(JudgedRound(connection: 1, status: .accepted, event: .round(round)))
    #expect(rounds(log.entries(for: repetition)).map(\.count) == [1])
    for _ in 0..<1000 { #expect(log.entries(for: repetition).isEmpty) }
    clock.advance(milliseconds: 60_000)
    #expect(rounds(log.dueEntries()).map(\.count) == [1000])
  }

  @Test func `denied rounds of one token with one status are one entry a minute; those of others are told apart`() {
    #expect(rounds(log.entries(for: judged(1, .tokenExpired))).map(\.count) == [1])
    for connection in UInt64(2)...5001 { #expect(log.entries(for: judged(connection, .tokenExpired)).isEmpty) }
    #expect(rounds(log.entries(for: judged(1, .commandRefused))).count == 1)
    #expect(rounds(log.entries(for: judged(1, .tokenExpired, token: 2))).count == 1)
    clock.advance(milliseconds: 60_000)
    let due = rounds(log.dueEntries())
    #expect(due.map(\.count) == [5000])
    #expect(due.map(\.judged.connection) == [5001])
    #expect(due.map(\.unixSeconds) == [testTime])
    #expect(log.entries(for: judged(1, .tokenExpired)).isEmpty)
    clock.advance(milliseconds: 60_000)
    #expect(rounds(log.dueEntries()).map(\.count) == [1])
    clock.advance(milliseconds: 60_000)
    #expect(log.dueEntries().isEmpty)
    #expect(rounds(log.entries(for: judged(1, .tokenExpired))).map(\.count) == [1])
  }

  @Test func `more tokens than are told apart are counted, and forgotten after a minute`() {
    var lineCount = 0
    for number in 0..<1000 {
      let round = AuditedRound(
        status: .tokenExpired, command: BoundedText("x"), tokenID: UInt8(number % 250), UInt8(number / 250))
      let judged = JudgedRound(connection: 1, status: .tokenExpired, event: .round(round))
      lineCount += rounds(log.entries(for: .judged(judged))).count
    }
    #expect(lineCount == 256)
    #expect(totals(log.dueEntries(isEnding: true)).map(\.otherDenialCount) == [743])
    #expect(rounds(log.entries(for: judged(1, .tokenExpired, token: 251))).count == 1)
  }

  @Test func `a complete log has each answer`() {
    let log = ServerLog(clock: clock, isComplete: true)
    _ = log.entries(for: .connected(connection: 1, someone))
    for status in [Status.tokenUnknown, .malformed, .malformed] {
      let entries = log.entries(for: .answered(connection: 1, status))
      guard case .answered(let entry)? = entries.first else {
        Issue.record("\(entries)")
        return
      }
      #expect(entries.count == 1 && (entry.connection, entry.status) == (1, status) && entry.peer == someone)
    }
    for _ in 0..<3 { #expect(rounds(log.entries(for: judged(1, .tokenExpired))).count == 1) }
    #expect(log.dueEntries(isEnding: true).isEmpty)
  }
}

extension AuditedRound {
  fileprivate init(status: Status, command: BoundedText<32>, tokenID: UInt8...) {
    var bytes = [UInt8](repeating: 0, count: 16)
    for (index, byte) in tokenID.enumerated() { bytes[index] = byte }
    self.init(
      status: status, command: command, verifyingKey: nil, tokenID: TokenID(bytes.span)!, subject: BoundedText("app"),
      isCompatibility: false, user: nil)
  }
}
