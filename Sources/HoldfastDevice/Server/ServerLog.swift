import HoldfastCore
import HoldfastTransport
import Synchronization

/// A bounded log of a server's notices.
///
/// Each round of a peer that has proved itself is an entry, and so is every notice about the server itself. Two things are
/// only counted, because a peer could otherwise fill the disk with them: actions of peers that have proved nothing, and
/// denied rounds with the same token and status. The first one of each is an entry at once; the following ones become one
/// entry, at most once a minute.
///
/// A connection's first `tokenUnknown` waits for the next message. A prover whose token the device has forgotten, for
/// instance after a restart, then sends the whole token, and the entry of its round records that.
package final class ServerLog<Time: Clock & Sendable>: Sendable {
  private let clock: Time
  private let state: Mutex<LogState>

  /// Makes an empty log.
  ///
  /// - Parameters:
  ///   - clock: the clock that measures the minute.
  ///   - isComplete: whether every answer is an entry, without a bound, for use in a laboratory.
  package init(clock: Time, isComplete: Bool = false) {
    self.clock = clock
    state = Mutex(LogState(isComplete: isComplete))
  }

  /// Returns the entries that `notice` causes, and those that are due by now.
  package func entries(for notice: ServerNotice) -> [ServerLogEntry] {
    let now = clock.monotonicMilliseconds()
    return state.withLock { state in
      let entry = state.take(notice, at: now, realClock: clock.unixSeconds())
      return state.due(at: now) + (entry.map { [$0] } ?? [])
    }
  }

  /// Returns the entries that are due by now, or all that was counted if `isEnding`.
  package func dueEntries(isEnding: Bool = false) -> [ServerLogEntry] {
    let now = clock.monotonicMilliseconds()
    return state.withLock { $0.due(at: now, isEnding: isEnding) }
  }
}

/// An entry of a server's log.
package enum ServerLogEntry: Sendable, Equatable {
  /// A round of a peer that has proved itself.
  case round(RoundEntry)
  /// The totals of peers that proved nothing.
  case strangers(StrangerTotals)
  /// An answer to a peer that proved nothing, only in a complete log.
  case answered(AnsweredEntry)
  /// A policy or a fault, which concerns the server itself.
  case notice(ServerNotice)
}

/// A round of a peer that has proved itself.
package struct RoundEntry: Sendable, Equatable {
  /// The status and the event of the round.
  package var judged: JudgedRound
  /// The process or Bluetooth address at the other end; nil if the transport does not know it.
  package var peer: Peer?
  /// Whether the device asked for the whole token just before this round.
  package var isOfForgottenToken = false
  /// The number of denied rounds, with the same token and status, that the entry stands for. It shows the last one.
  package var count: UInt64 = 1
  /// The time of the round, in Unix seconds; nil if the entry was not delayed, or if there is no clock.
  package var unixSeconds: UInt64?
}

/// An answer to a peer that proved nothing.
package struct AnsweredEntry: Sendable, Equatable {
  /// The number of the connection, counted from 1 since the server started.
  package let connection: UInt64
  /// The process or Bluetooth address at the other end; nil if the transport does not know it.
  package let peer: Peer?
  /// The status of the unsealed M3.
  package let status: Status
}

/// The totals of peers that have proved nothing, and of their connections.
package struct StrangerTotals: Sendable, Equatable {
  /// The answers to such peers, by status.
  package var answers = UnauthenticatedTotals()
  /// The number of connections that the answers went to.
  public var connectionCount: UInt64 = 0
  /// The peer, if there was only one connection.
  package var peer: Peer?
  /// The number of peers that were refused, because all places were taken.
  package var sentAwayCount: UInt64 = 0
  /// The number of connections that were ended for a newcomer.
  package var displacedCount: UInt64 = 0
  /// The number of connections that could not be accepted or served.
  package var faultCount: UInt64 = 0
  /// The number of denied rounds of tokens beyond those that are distinguished.
  package var otherDenialCount: UInt64 = 0
  /// The milliseconds since the previous entry; nil for the first one.
  package var milliseconds: UInt64?
}

/// The least interval between two entries of things that are only counted, in milliseconds.
private let intervalMilliseconds: UInt64 = 60_000

/// The most connections and denials that are distinguished. A server has fewer connections than that. Denials of further
/// tokens are counted together.
private let capacity = 256

private struct LogState {
  let isComplete: Bool
  private var connections: [UInt64: ConnectionState] = [:]
  private var strangers = StrangerTotals()
  private var strangersReportedAt: UInt64?
  /// The number of the current entry about such peers. Each connection counts once in each entry.
  private var period: UInt64 = 0
  private var denials: [DenialKey: Denial] = [:]
  /// The commands that the policy allows and the actuator does not know.
  private var unknownCommands: Set<BoundedText<32>> = []

  init(isComplete: Bool) {
    self.isComplete = isComplete
  }

  private struct ConnectionState {
    let peer: Peer?
    var hasUnknownToken = false
    var countedIn: UInt64?
  }

  private struct Denial {
    let reportedAt: UInt64
    /// The rounds since then, as one entry.
    var next: RoundEntry?
  }

  mutating func take(_ notice: ServerNotice, at now: UInt64, realClock: UInt64?) -> ServerLogEntry? {
    switch notice {
    case .connected(let connection, let peer):
      if connections.count < capacity { connections[connection] = ConnectionState(peer: peer) }
    case .answered(let connection, let status):
      answered(connection, status)
      if isComplete {
        return .answered(AnsweredEntry(connection: connection, peer: connections[connection]?.peer, status: status))
      }
    case .judged(let judged): return round(judged, at: now, realClock: realClock).map { .round($0) }
    case .disconnected(let connection): forget(connection)
    case .displaced(let connection):
      forget(connection)
      strangers.displacedCount += 1
    case .busy: strangers.sentAwayCount += 1
    case .fault, .acceptFault: strangers.faultCount += 1
    case .unknownToActuator(_, let command):
      // A mistake of the owner's is one entry, however often it has an effect.
      if unknownCommands.count < capacity, unknownCommands.insert(command).inserted { return .notice(notice) }
    case .bulletin, .receiptRefused, .commandFailed, .policy, .ledgerFault, .auditLogNearlyFull: return .notice(notice)
    }
    return nil
  }

  mutating func due(at now: UInt64, isEnding: Bool = false) -> [ServerLogEntry] {
    dueDenials(at: now, isEnding: isEnding) + dueStrangers(at: now, isEnding: isEnding)
  }

  private mutating func answered(_ connection: UInt64, _ status: Status) {
    if status == .tokenUnknown, connections[connection]?.hasUnknownToken == false {
      connections[connection]?.hasUnknownToken = true
    } else {
      countForgotten(of: connection)
      count(status, of: connection)
    }
  }

  /// Counts the `tokenUnknown` of a connection that did not send the whole token after all.
  private mutating func countForgotten(of connection: UInt64) {
    guard connections[connection]?.hasUnknownToken == true else { return }
    connections[connection]?.hasUnknownToken = false
    count(.tokenUnknown, of: connection)
  }

  private mutating func count(_ status: Status, of connection: UInt64) {
    guard !isComplete else { return }
    strangers.answers[status] += 1
    guard connections[connection] == nil || connections[connection]?.countedIn != period else { return }
    strangers.connectionCount += 1
    strangers.peer = strangers.connectionCount == 1 ? connections[connection]?.peer : nil
    connections[connection]?.countedIn = period
  }

  private mutating func forget(_ connection: UInt64) {
    countForgotten(of: connection)
    connections[connection] = nil
  }

  private mutating func round(_ judged: JudgedRound, at now: UInt64, realClock: UInt64?) -> RoundEntry? {
    var entry = RoundEntry(judged: judged, peer: connections[judged.connection]?.peer)
    entry.isOfForgottenToken = connections[judged.connection]?.hasUnknownToken == true
    connections[judged.connection]?.hasUnknownToken = false
    let isRepetition = judged.round?.isRepetition ?? false
    guard judged.status != .accepted || isRepetition, !isComplete else { return entry }
    let key = DenialKey(judged)
    if let denial = denials[key] {
      entry.count = (denial.next?.count ?? 0) + 1
      entry.unixSeconds = realClock
      denials[key]?.next = entry
      return nil
    }
    guard denials.count < capacity else {
      strangers.otherDenialCount += 1
      return nil
    }
    denials[key] = Denial(reportedAt: now)
    return entry
  }

  private mutating func dueDenials(at now: UInt64, isEnding: Bool) -> [ServerLogEntry] {
    var due: [ServerLogEntry] = []
    for (key, denial) in denials where isEnding || now >= denial.reportedAt + intervalMilliseconds {
      denials[key] = denial.next == nil ? nil : Denial(reportedAt: now)
      if let next = denial.next { due.append(.round(next)) }
    }
    return due
  }

  private mutating func dueStrangers(at now: UInt64, isEnding: Bool) -> [ServerLogEntry] {
    if isEnding { for connection in connections.keys.sorted() { countForgotten(of: connection) } }
    guard strangers != StrangerTotals() else { return [] }
    if let last = strangersReportedAt, !isEnding, now < last + intervalMilliseconds { return [] }
    var totals = strangers
    totals.milliseconds = strangersReportedAt.map { now - $0 }
    strangers = StrangerTotals()
    strangersReportedAt = now
    period += 1
    return [.strangers(totals)]
  }
}

/// The key of denied rounds that share one entry.
private struct DenialKey: Hashable {
  let status: Status
  let verifyingKey: [UInt8]
  let tokenID: [UInt8]

  init(_ judged: JudgedRound) {
    status = judged.status
    verifyingKey = judged.round?.verifyingKey.map { copy($0.bytes) } ?? []
    tokenID = judged.round.map { copy($0.tokenID.bytes) } ?? []
  }
}

private func copy(_ bytes: Span<UInt8>) -> [UInt8] { bytes.indices.map { bytes[$0] } }

/// An event for the operator of a server. It may come from any thread.
public enum ServerNotice: Sendable, Equatable {
  /// The policy that is in force from now on: at the start, and after each change of the file.
  case policy(PolicyReading)
  /// A peer was accepted. `connection` counts connections from 1. The peer is nil if the transport does not know it.
  case connected(connection: UInt64, Peer?)
  /// A message was answered whose peer proved nothing by it.
  case answered(connection: UInt64, Status)
  /// A message was answered whose peer has proved itself, or used one of the owner's codes.
  case judged(JudgedRound)
  /// The device took the bulletin with this number, which a peer delivered, for it or for one of its groups.
  case bulletin(connection: UInt64, issuer: KeyID, audience: AudienceID, number: UInt64)
  /// A receipt of the audit log's home for the entries up to this number contradicts the log. Nothing was acknowledged.
  case receiptRefused(connection: UInt64, home: KeyID, count: UInt64)
  /// The policy allows a command that the actuator does not know. It was refused.
  case unknownToActuator(connection: UInt64, command: BoundedText<32>)
  /// The command of an accepted round failed. It was answered with `internal`.
  case commandFailed(connection: UInt64, command: BoundedText<32>, ActuatorFailure)
  /// A connection ended, by the peer or by this end.
  case disconnected(connection: UInt64)
  /// A connection was ended, because all places were taken and its peer had not proved itself.
  case displaced(connection: UInt64)
  /// A peer was refused, because all places are taken.
  case busy
  /// A round could not begin. Its connection was ended.
  case fault(connection: UInt64, DeviceFault)
  /// The ledger could not be written at the end. Accepted rounds are safe; the last totals are lost.
  case ledgerFault(LedgerFault)
  /// The audit log has reached nine tenths of the entries that policy allows. Beyond them, the device drops the oldest ones.
  case auditLogNearlyFull(kept: UInt64, bound: UInt64)
  /// A peer could not be accepted. The server tries again.
  case acceptFault(TransportError)
}

/// The end of a round of a peer that has proved itself.
public struct JudgedRound: Sendable, Equatable {
  /// The number of the connection.
  public var connection: UInt64
  /// The status of the answer.
  public var status: Status
  /// The event that the ledger recorded: a round, or a user who was activated or unlocked; nil if the round ended before.
  package var event: AuditEvent?

  /// Makes the end of a round.
  package init(connection: UInt64, status: Status, event: AuditEvent?) {
    (self.connection, self.status, self.event) = (connection, status, event)
  }

  /// The round; nil if the event is not a round.
  package var round: AuditedRound? {
    guard case .round(let round) = event else { return nil }
    return round
  }
}

/// The reason that a server could not start, or stopped unexpectedly.
public enum ServerFault: Error, Equatable {
  /// The server cannot listen at an endpoint, or has lost it.
  case endpoint(Endpoint, TransportError)
  /// A listener of another kind can accept no more peers.
  case listener(TransportError)
  /// The ledger could not be written.
  case ledger(LedgerFault)
  /// The device has another server already.
  case alreadyServed
  /// The process has no descriptors left, or may not have as many as its connections may need.
  case noDescriptors
}
