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
    /// The moment from which one connection asks all hosts again; nil if all have answered.
    var survey: Deadline?

    /// Whether the next connection asks all hosts.
    var isSurveyDue: Bool { isUncertain || survey?.hasPassed ?? false }
  }

  /// A reason not to use a host.
  private struct Refusal: Error {
    let fault: SQLFault
    /// Whether it is known that the host is not the primary, or must not be used.
    let isAnswer: Bool
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

  /// Whether the connection is alive, its server is on the latest timeline that was seen, and no host is to be asked again.
  ///
  /// One that is not alive was lost while nobody used it.
  func isUsable(_ connection: PostgreSQLConnection) -> Bool {
    guard connection.isAlive else {
      noteLoss()
      return false
    }
    return knowledge.withLock { knowledge in
      connection.server.timeline >= knowledge.highestTimeline && !(isReplicated && knowledge.isSurveyDue)
    }
  }

  /// Connects to the primary.
  ///
  /// After a loss, every connection asks all hosts until one has heard them, because a former primary may answer before its
  /// successor. A host that accepts connections and is slow to answer is waited for then: it may be the successor, under load.
  /// If a host has not answered, one connection asks all again after a while.
  ///
  /// - Throws: The fault of the host that said most about it; `unavailable` if none answers, or only standbys.
  func connect() throws(SQLFault) -> PostgreSQLConnection {
    let again = Deadline(afterMilliseconds: limits.surveyMilliseconds)
    let (first, isSurvey, isPatient, lossCount) = knowledge.withLock { knowledge in
      let isSurvey = isReplicated && knowledge.isSurveyDue
      if isSurvey { knowledge.survey = again }
      return (knowledge.preferredHost, isSurvey, isReplicated && knowledge.isUncertain, knowledge.lossCount)
    }
    var best: (connection: PostgreSQLConnection, host: Int)?
    var fault = SQLFault.unavailable
    var haveAllAnswered = true
    for host in [first] + settings.hosts.indices.filter({ $0 != first }) {
      do throws(Refusal) {
        let connection = try connect(to: host, isPatient: isPatient)
        if best.map({ $0.connection.server.timeline < connection.server.timeline }) ?? true {
          best = (connection, host)
        }
        if !isSurvey { break }
      } catch {
        if error.fault != .unavailable { fault = error.fault }
        if !error.isAnswer { haveAllAnswered = false }
      }
    }
    guard let best else {
      noteLoss()
      throw fault
    }
    let (isLatest, isProven) = knowledge.withLock { knowledge in
      knowledge.preferredHost = best.host
      // Unless a connection was lost meanwhile.
      if isSurvey && knowledge.lossCount == lossCount {
        knowledge.isUncertain = false
        knowledge.survey = haveAllAnswered ? nil : again
      }
      return (
        best.connection.server.timeline >= knowledge.highestTimeline,
        isSurvey || !isReplicated || knowledge.lossCount == lossCount
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
  private func connect(to host: Int, isPatient: Bool) throws(Refusal) -> PostgreSQLConnection {
    let connection: PostgreSQLConnection
    do throws(SQLFault) {
      let milliseconds = settings.connectMilliseconds
      let answerMilliseconds = isPatient ? max(milliseconds, limits.slowAnswerMilliseconds) : milliseconds
      connection = try PostgreSQLConnection(
        settings: settings.hosts[host], deadline: Deadline(afterMilliseconds: milliseconds),
        answerDeadline: Deadline(afterMilliseconds: answerMilliseconds))
    } catch { throw Refusal(fault: error, isAnswer: error != .unavailable) }
    try examine(connection)
    return connection
  }

  /// Asks the server for its state, and rejects it if nothing must be written to it.
  ///
  /// - Throws: `readOnly`; `notSynchronous`; `olderTimeline`; `foreign` if it has never been one server with those that were seen
  ///   before; `unavailable`, also for a standby.
  func check(_ connection: PostgreSQLConnection) throws(SQLFault) {
    do throws(Refusal) { try examine(connection) } catch { throw error.fault }
  }

  private func examine(_ connection: PostgreSQLConnection) throws(Refusal) {
    let results: [PostgreSQLResult]
    do throws(PostgreSQLFailure) {
      results = try connection.run(
        script: Self.question, until: Deadline(afterMilliseconds: limits.answerMilliseconds))
    } catch { throw Refusal(fault: error.fault, isAnswer: !error.isConnectionLost) }
    guard let answer = results.last, let timeline = answer.text(1).flatMap({ UInt32($0.prefix(8), radix: 16) }),
      let standbys = answer.text(2), let level = answer.text(3), let milliseconds = answer.text(4).flatMap({ Int($0) }),
      let systemIdentifier = answer.text(5)
    else { throw Refusal(fault: .unavailable, isAnswer: false) }
    // Even a server that cannot be used shows that others are former primaries.
    let fault = note(timeline, systemIdentifier: systemIdentifier)
    guard answer.text(0) == "f" else {
      throw Refusal(fault: fault == .foreign ? .foreign : .unavailable, isAnswer: true)
    }
    if let fault { throw Refusal(fault: fault, isAnswer: true) }
    guard answer.text(6) == "off" else { throw Refusal(fault: .readOnly, isAnswer: true) }
    if isReplicated {
      guard !standbys.isEmpty, level == "on" || level == "remote_apply" else {
        throw Refusal(fault: .notSynchronous, isAnswer: true)
      }
    }
    connection.server = PostgreSQLServerState(
      timeline: timeline, commitLevel: level == "remote_apply" ? "remote_apply" : "on",
      statementMilliseconds: milliseconds)
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
