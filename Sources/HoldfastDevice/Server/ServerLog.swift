import HoldfastCore
import HoldfastTransport
import Synchronization

/// A bounded account of what a server says, for a log that somebody keeps.
///
/// Each round of a peer that has proved itself is an entry, and so is what concerns the server itself. Two things are only
/// counted, since whoever causes them could fill a disk: what peers do that have proved nothing, and denied rounds of the same
/// token with the same status. The first one of either is an entry at once; the others become one entry, at most once a minute.
///
/// A connection's first `tokenUnknown` waits for the next message: a prover whose token the device has forgotten, after a
/// restart for instance, sends the whole token then, and its round says so.
package final class ServerLog<Time: Clock & Sendable>: Sendable {
  private let clock: Time
  private let state: Mutex<LogState>

  /// - Parameters:
  ///   - clock: tells when a minute has passed.
  ///   - isComplete: every answer is an entry, without a bound: for a laboratory.
  package init(clock: Time, isComplete: Bool = false) {
    self.clock = clock
    state = Mutex(LogState(isComplete: isComplete))
  }

  /// The entries that `notice` gives rise to, and those that are due by now.
  package func entries(for notice: ServerNotice) -> [ServerLogEntry] {
    let now = clock.monotonicMilliseconds()
    return state.withLock { state in
      let entry = state.take(notice, at: now, realClock: clock.unixSeconds())
      return state.due(at: now) + (entry.map { [$0] } ?? [])
    }
  }

  /// The entries that are due by now; all that was counted when `isEnding`.
  package func dueEntries(isEnding: Bool = false) -> [ServerLogEntry] {
    let now = clock.monotonicMilliseconds()
    return state.withLock { $0.due(at: now, isEnding: isEnding) }
  }
}

/// Something for the log of a server.
package enum ServerLogEntry: Sendable, Equatable {
  case round(RoundEntry)
  case strangers(StrangerTotals)
  /// In a complete log only: an answer to a peer that proved nothing.
  case answered(AnsweredEntry)
  /// A policy or a fault: it concerns the server itself.
  case notice(ServerNotice)
}

/// A round of a peer that has proved itself.
package struct RoundEntry: Sendable, Equatable {
  package var judged: JudgedRound
  package var peer: Peer?
  /// Whether the device had asked for the whole token just before.
  package var isOfForgottenToken = false
  /// How many denied rounds of the same token, with the same status, the entry stands for; it shows the last one.
  package var count: UInt64 = 1
  /// When that was, in Unix seconds; nil where the entry was not kept back, and where there is no clock.
  package var unixSeconds: UInt64?
}

/// An answer to a peer that proved nothing.
package struct AnsweredEntry: Sendable, Equatable {
  /// The number of the connection, counted from 1 since the server started.
  package let connection: UInt64
  /// The process or Bluetooth address at the other end; nil where the transport does not know it.
  package let peer: Peer?
  /// The status of the unsealed M3.
  package let status: Status
}

/// What peers have done that proved nothing, and what became of them.
package struct StrangerTotals: Sendable, Equatable {
  /// The answers to them.
  package var answers = UnprovedTotals()
  /// How many connections those went to.
  package var connectionCount: UInt64 = 0
  /// The peer, where it was one connection only.
  package var peer: Peer?
  /// Peers that were sent away, because all places were taken.
  package var sentAwayCount: UInt64 = 0
  /// Connections that were ended for a newcomer.
  package var displacedCount: UInt64 = 0
  /// Connections that could not be accepted, or not be served.
  package var faultCount: UInt64 = 0
  /// Denied rounds of more tokens than are told apart.
  package var otherDenialCount: UInt64 = 0
  /// How long ago the entry before was made; nil for the first.
  package var milliseconds: UInt64?
}

/// How long an entry of what is only counted keeps the next one back.
private let intervalMilliseconds: UInt64 = 60_000

/// How many connections and denials are told apart at most. A server has fewer connections than that; denials of further tokens
/// are counted together.
private let capacity = 256

private struct LogState {
  let isComplete: Bool
  private var connections: [UInt64: ConnectionState] = [:]
  private var strangers = StrangerTotals()
  private var strangersReportedAt: UInt64?
  /// Raised with each entry on strangers: a connection counts once in each.
  private var period: UInt64 = 0
  private var denials: [DenialKey: Denial] = [:]
  /// Commands that policy allows and the actuator does not know.
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
    /// What has come since then, as one entry.
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
      // One mistake of the owner's is one entry, however often it is run into.
      if unknownCommands.count < capacity, unknownCommands.insert(command).inserted { return .notice(notice) }
    case .policy, .ledgerFault: return .notice(notice)
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

  /// The whole token did not come after all.
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

/// Denied rounds that are one entry, however many there are.
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

/// Something that whoever runs a server may want to say. It may come from any thread.
package enum ServerNotice: Sendable, Equatable {
  /// The policy that is in force from now on: at the start, and after each change of the file.
  case policy(PolicyReading)
  /// A peer was accepted; `connection` counts them from 1.
  case connected(connection: UInt64, Peer?)
  /// A message was answered whose peer proved nothing by it.
  case answered(connection: UInt64, Status)
  /// A message was answered whose peer has proved itself, or used one of the owner's codes.
  case judged(JudgedRound)
  /// Policy and token allow a command that the actuator does not know; it was answered `internal`.
  case unknownToActuator(connection: UInt64, command: BoundedText<32>)
  /// A connection ended, by the peer or by this end.
  case disconnected(connection: UInt64)
  /// A connection ended, because all places were taken and its peer had not proved itself.
  case displaced(connection: UInt64)
  /// A peer was sent away: all places are taken.
  case busy
  /// A round could not begin; its connection was ended.
  case fault(connection: UInt64, SessionFault)
  /// The ledger could not be written at the end; what was accepted is safe, the last totals are not.
  case ledgerFault(LedgerFault)
  /// No peer could be accepted just now; it is tried again.
  case acceptFault(TransportError)
}

/// How a round of a peer that has proved itself ended.
package struct JudgedRound: Sendable, Equatable {
  /// The number of the connection.
  package var connection: UInt64
  package var status: Status
  /// What the ledger was told: a round, or a user who was activated or unlocked; nil where the round ended before.
  package var event: AuditEvent?

  package init(connection: UInt64, status: Status, event: AuditEvent?) {
    (self.connection, self.status, self.event) = (connection, status, event)
  }

  /// The round, where it was one.
  package var round: AuditedRound? {
    guard case .round(let round) = event else { return nil }
    return round
  }
}

/// Why a server could not start, or ended by itself.
package enum ServerFault: Error, Equatable {
  case folder(DeviceFolderFault)
  /// An endpoint cannot be listened at, or is gone.
  case endpoint(Endpoint, TransportError)
  case ledger(LedgerFault)
  /// The process has no descriptors left, or may not have as many as its connections may need.
  case noDescriptors
}
