import HoldfastLinux
import Synchronization

/// The facts that a server states about itself when a connection is made.
struct PostgreSQLServerState {
  /// The timeline, which rises with each failover.
  var timeline: UInt32 = 0
  /// The level to which a commit sets `synchronous_commit`: never below `on`.
  var commitLevel = "on"
  /// The server's `statement_timeout`; 0 for none.
  var statementMilliseconds = 0
  /// Whether a commit waits for a standby.
  var hasStandbyNames = false
}

/// A primary with its standbys: finds the primary, and rejects a server to which nothing must be written.
final class PostgreSQLCluster: Sendable {
  let settings: PostgreSQLSettings
  private let limits: SQLLimits
  private let knowledge = Mutex(Knowledge())

  /// The facts that the connections so far have shown.
  private struct Knowledge {
    var highestTimeline: UInt32 = 0
    /// The number that a server and its standbys have in common.
    var systemIdentifier: String?
    /// The host of the last connection, which is tried first.
    var preferredHost = 0
    /// Whether no connection has asked all hosts since one was lost, so that nobody knows which is the primary.
    var isUncertain = true
    /// The number of losses that were noted: a survey that began before one of them proves nothing about it.
    var lossCount = 0
    /// The moment from which the other hosts are asked again: a primary that has a successor may go on answering.
    var survey = Deadline(afterMilliseconds: 0)
    /// The number of commits that were given up, and one more: a process before this one may have done so.
    var givenUpCount = 1
    /// The same number when a look found that no commit waited any more.
    var settledCount = 0
    /// The moment from which a commit that was given up has waited for so long that a look finds it.
    var visibility = Deadline(afterMilliseconds: 0)
  }

  init(settings: PostgreSQLSettings, limits: SQLLimits) {
    self.settings = settings
    self.limits = limits
  }

  /// Whether several hosts are named, so that commits must be on more than one.
  var isReplicated: Bool { settings.hosts.count > 1 }

  /// Remembers that a connection was lost, so that the primary may be another host by now.
  func noteLoss() {
    knowledge.withLock { knowledge in
      knowledge.isUncertain = true
      knowledge.lossCount += 1
    }
  }

  /// Remembers that a commit was given up. It may wait for a standby at the server, where it keeps its connection and its locks.
  func noteGivenUp() {
    knowledge.withLock { knowledge in
      knowledge.givenUpCount += 1
      knowledge.visibility = Deadline(afterMilliseconds: limits.waitingMilliseconds)
    }
  }

  /// A number that rises with each commit that was given up; nil if it is known that none of them waits any more. As long as one does,
  /// nothing more must be written: the server would soon have no connection for reading.
  var givenUpCount: Int? {
    knowledge.withLock { $0.givenUpCount == $0.settledCount ? nil : $0.givenUpCount }
  }

  /// Remembers that a look found no commit that waits, unless one was given up so recently that the look could miss it.
  ///
  /// - Parameter count: ``givenUpCount`` before the look.
  func noteSettled(_ count: Int) {
    knowledge.withLock { if $0.visibility.hasPassed { $0.settledCount = max($0.settledCount, count) } }
  }

  /// Returns whether a connection that nobody uses can be used again: it is alive, its server is on the latest timeline that was seen,
  /// and it is known which is the primary. Now and then, the other hosts are asked before that.
  ///
  /// One that is not alive was lost while nobody used it.
  func isUsable(_ connection: PostgreSQLConnection) -> Bool {
    guard connection.isAlive else {
      noteLoss()
      return false
    }
    askOthers()
    return knowledge.withLock { knowledge in
      connection.server.timeline >= knowledge.highestTimeline && !(isReplicated && knowledge.isUncertain)
    }
  }

  /// Asks the hosts that were not the primary for their timelines, if it is time. Of several threads, one does.
  private func askOthers() {
    let preferred: Int? = knowledge.withLock { knowledge in
      guard isReplicated, !knowledge.isUncertain, knowledge.survey.hasPassed else { return nil }
      knowledge.survey = .never
      return knowledge.preferredHost
    }
    guard let preferred else { return }
    for host in settings.hosts.indices where host != preferred { _ = try? connect(to: host, isPatient: false) }
    knowledge.withLock { $0.survey = Deadline(afterMilliseconds: limits.surveyMilliseconds) }
  }

  /// Connects to the primary.
  ///
  /// After a loss, every connection asks all hosts until one has heard them, because a former primary may answer before its
  /// successor. A host that accepts connections and is slow to answer is waited for then: it may be the successor, under load.
  ///
  /// - Throws: The fault of the host that said most about it; `unavailable` if none answers, or only standbys.
  func connect() throws(SQLFault) -> PostgreSQLConnection {
    let (first, isSurvey, lossCount) = knowledge.withLock { knowledge in
      (knowledge.preferredHost, isReplicated && knowledge.isUncertain, knowledge.lossCount)
    }
    var best: (connection: PostgreSQLConnection, host: Int)?
    var fault = SQLFault.unavailable
    for host in [first] + settings.hosts.indices.filter({ $0 != first }) {
      do throws(SQLFault) {
        let connection = try connect(to: host, isPatient: isSurvey)
        if best.map({ $0.connection.server.timeline < connection.server.timeline }) ?? true {
          best = (connection, host)
        }
        if !isSurvey { break }
      } catch {
        if error != .unavailable { fault = error }
      }
    }
    guard let best else {
      noteLoss()
      throw fault
    }
    let (isLatest, isProven) = knowledge.withLock { knowledge in
      knowledge.preferredHost = best.host
      let isUndisturbed = knowledge.lossCount == lossCount
      if isSurvey && isUndisturbed {
        knowledge.isUncertain = false
        knowledge.survey = Deadline(afterMilliseconds: limits.surveyMilliseconds)
      }
      return (
        best.connection.server.timeline >= knowledge.highestTimeline, isSurvey || !isReplicated || isUndisturbed
      )
    }
    // Another connection was lost meanwhile: this host may be a former primary by now, and all have to be asked.
    guard isProven else { return try connect() }
    // A host that was asked later is further, but cannot be used itself.
    guard isLatest else {
      noteLoss()
      throw fault == .unavailable ? .olderTimeline : fault
    }
    return best.connection
  }

  /// - Parameter isPatient: Whether the server of a host that accepts connections is waited for although it is slow.
  private func connect(to host: Int, isPatient: Bool) throws(SQLFault) -> PostgreSQLConnection {
    let milliseconds = settings.connectMilliseconds
    let answerMilliseconds = isPatient ? max(milliseconds, limits.slowAnswerMilliseconds) : milliseconds
    let connection = try PostgreSQLConnection(
      settings: settings.hosts[host], deadline: Deadline(afterMilliseconds: milliseconds),
      answerDeadline: Deadline(afterMilliseconds: answerMilliseconds))
    try check(connection)
    return connection
  }

  /// Asks the server for its state, and rejects it if nothing must be written to it.
  ///
  /// - Throws: `readOnly`; `notSynchronous`; `olderTimeline`; `foreign` if it has never been one server with those that were seen
  ///   before; `unavailable`, also for a standby.
  func check(_ connection: PostgreSQLConnection) throws(SQLFault) {
    let results: [PostgreSQLResult]
    do throws(PostgreSQLFailure) {
      results = try connection.run(
        script: Self.question, until: Deadline(afterMilliseconds: limits.answerMilliseconds))
    } catch { throw error.fault }
    guard let answer = results.last, let timeline = answer.text(1).flatMap({ UInt32($0.prefix(8), radix: 16) }),
      let standbys = answer.text(2), let level = answer.text(3), let milliseconds = answer.text(4).flatMap({ Int($0) }),
      let systemIdentifier = answer.text(5)
    else { throw .unavailable }
    // Even a server that cannot be used shows that others are former primaries.
    let fault = note(timeline, systemIdentifier: systemIdentifier)
    guard answer.text(0) == "f" else { throw fault == .foreign ? .foreign : .unavailable }
    if let fault { throw fault }
    guard answer.text(6) == "off" else { throw .readOnly }
    if isReplicated {
      guard !standbys.isEmpty, level == "on" || level == "remote_apply" else { throw .notSynchronous }
    }
    connection.server = PostgreSQLServerState(
      timeline: timeline, commitLevel: level == "remote_apply" ? "remote_apply" : "on",
      statementMilliseconds: milliseconds, hasStandbyNames: !standbys.isEmpty)
  }

  private func note(_ timeline: UInt32, systemIdentifier: String) -> SQLFault? {
    knowledge.withLock { knowledge in
      guard knowledge.systemIdentifier ?? systemIdentifier == systemIdentifier else { return .foreign }
      guard timeline >= knowledge.highestTimeline else { return .olderTimeline }
      knowledge.systemIdentifier = systemIdentifier
      knowledge.highestTimeline = timeline
      return nil
    }
  }

  /// The name of a file of the write-ahead log begins with the timeline. A standby writes none, but knows its timeline, perhaps
  /// with a delay.
  private static let question = """
    SELECT pg_is_in_recovery(),
      CASE WHEN pg_is_in_recovery() THEN lpad(to_hex((SELECT timeline_id FROM pg_control_checkpoint())), 8, '0')
        ELSE pg_walfile_name(pg_current_wal_lsn()) END,
      current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),
      (SELECT setting FROM pg_settings WHERE name = 'statement_timeout'),
      (SELECT system_identifier FROM pg_control_system()), current_setting('default_transaction_read_only')
    """
}
