import Glibc

/// The limits of time of a database, and the source of its pauses.
package struct SQLLimits: Sendable {
  /// The longest wait for a free connection; on SQLite also for the lock of another process.
  package var connectionMilliseconds = 5000
  /// The longest wait for the answer to a commit, which on PostgreSQL includes the wait for the standby.
  package var commitMilliseconds = 10_000
  /// The time after which a commit that waits for the standby keeps others from writing: half of the longest wait.
  var waitingMilliseconds: Int { commitMilliseconds / 2 }
  /// The time within which the server must answer after its own `statement_timeout` has passed.
  package var answerMilliseconds = 5000
  /// The longest wait for an answer while the schema is brought up to date, or while another process does so.
  package var migrationMilliseconds = 600_000
  /// The time after which the other hosts of a PostgreSQL database are asked whether they are the primary by now.
  package var surveyMilliseconds = 5000
  /// The time that a PostgreSQL server whose host accepts connections has for an answer while nobody knows which is the primary.
  package var slowAnswerMilliseconds = 10_000
  /// Waits before a transaction that collided runs again.
  package var pause: @Sendable (_ milliseconds: Int) -> Void = { milliseconds in usleep(UInt32(milliseconds) * 1000) }
  /// Chooses a pause at random, so that two transactions do not collide again.
  package var choose: @Sendable (_ range: ClosedRange<Int>) -> Int = { Int.random(in: $0) }

  /// Creates the limits of the service.
  package init() {}
}
