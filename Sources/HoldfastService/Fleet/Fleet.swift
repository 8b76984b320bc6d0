import HoldfastCore
import HoldfastDatabase
import HoldfastIssuer
import HoldfastLinux
import HoldfastStorage
import Synchronization

/// The online service of a fleet: it decides which prover may enrol for which device, and remembers what was issued.
///
/// Its whole state is in the database. Any number of processes with the same service key may use one database, and any number
/// of threads may use a `Fleet`.
package final class Fleet: Sendable {
  private let database: SQLDatabase
  let serviceKey: ServiceKey
  private let clock: any Clock & Sendable
  /// The secrets that the service shares with devices.
  let pageSecrets = PageSecrets()
  /// The numbers of refused pages that wait to be written.
  let refusedPages = RefusedPages()
  /// The condition under which the service signs receipts.
  let receiptCondition: ReceiptCondition
  /// The last state of receipts that operators were told.
  let receiptWatch = Mutex(ReceiptWatch())
  /// The last ends of trust that operators were told.
  let trustWatch = Mutex(TrustWatch())
  private let opened = Mutex<FleetKeys?>(nil)

  /// Opens the service of a database that ``create(in:serviceKey:policy:by:clock:)`` filled.
  ///
  /// - Parameters:
  ///   - location: The database.
  ///   - serviceKey: The secret that encrypts the keys in it.
  ///   - connectionCount: The number of connections to PostgreSQL.
  ///   - receiptsWithoutStandby: Whether receipts for audit logs are signed although no synchronous standby has the entries.
  ///   - limits: The limits of time of the database.
  ///   - clock: The clock.
  /// - Throws: `database`, `wrongServiceKey`, `notCreated`, `corrupt`.
  package init(
    _ location: DatabaseLocation, serviceKey: consuming ServiceKey, connectionCount: Int = 8,
    receiptsWithoutStandby: Bool = false, limits: SQLLimits = SQLLimits(), clock: any Clock & Sendable = SystemClock()
  ) throws(FleetFault) {
    database = try Self.open(location, connectionCount: connectionCount, creating: false, limits: limits)
    self.serviceKey = serviceKey
    self.clock = clock
    receiptCondition = ReceiptCondition(location, isWaived: receiptsWithoutStandby)
    try read { (session) throws(FleetFault) in
      guard try session.row("SELECT revision FROM settings WHERE name = 'policy'") != nil else { throw .notCreated }
    }
    try makeMissingKeys()
    _ = try read { (session) throws(FleetFault) in try self.keys(in: session) }
  }

  static func open(
    _ location: DatabaseLocation, connectionCount: Int, creating: Bool, schemaVersion: Int = FleetSchema.scripts.count,
    limits: SQLLimits = SQLLimits()
  ) throws(FleetFault) -> SQLDatabase {
    do throws(SQLFault) {
      return try SQLDatabase(
        location, applicationID: FleetSchema.applicationID, schema: Array(FleetSchema.scripts.prefix(schemaVersion)),
        connectionCount: connectionCount, creating: creating, limits: limits)
    } catch { throw .database(error) }
  }

  /// Checks that the clock can be relied on and the database answers, for a readiness probe.
  package func check() throws(FleetFault) {
    _ = try now()
    do throws(SQLFault) { try database.check() } catch { throw .database(error) }
  }

  /// Runs a body as one durable transaction. The body may run several times.
  func transaction<Result>(
    _ body: (FleetSession) throws(FleetFault) -> Result
  ) throws(FleetFault) -> Result {
    try Self.transaction(in: database, at: try now(), body)
  }

  static func transaction<Result>(
    in database: SQLDatabase, at now: UInt64, _ body: (FleetSession) throws(FleetFault) -> Result
  ) throws(FleetFault) -> Result {
    var fault: FleetFault?
    do throws(SQLFault) {
      return try database.transaction { (session) throws(SQLFault) in
        try FleetSession(session, now: now).passing(&fault, body)
      }
    } catch { throw fault ?? .database(error) }
  }

  /// Runs queries on one state of the database.
  func read<Result>(_ body: (FleetSession) throws(FleetFault) -> Result) throws(FleetFault) -> Result {
    var fault: FleetFault?
    let now = try now()
    do throws(SQLFault) {
      return try database.read { (session) throws(SQLFault) in
        try FleetSession(session, now: now).passing(&fault, body)
      }
    } catch { throw fault ?? .database(error) }
  }

  /// Returns policy and keys as they are in a transaction. They are read anew only after a change.
  func keys(in session: FleetSession) throws(FleetFault) -> FleetKeys {
    let revision = try session.revision()
    if let keys = opened.withLock({ $0 }), keys.revision == revision { return keys }
    let keys = try session.keys(with: serviceKey)
    // Another process may have committed a change while the tables were read.
    if try session.revision() == keys.revision { opened.withLock { $0 = keys } }
    return keys
  }

  private func now() throws(FleetFault) -> UInt64 {
    guard let now = clock.unixSeconds() else { throw .noClock }
    return now
  }
}

/// A transaction of the service's database, at one time.
struct FleetSession {
  private let session: any SQLSession
  /// The time of the transaction, in Unix seconds.
  let now: UInt64

  init(_ session: any SQLSession, now: UInt64) {
    (self.session, self.now) = (session, now)
  }

  /// Runs a body. A fault that is not the database's is kept, and ends the transaction.
  func passing<Result>(
    _ fault: inout FleetFault?, _ body: (FleetSession) throws(FleetFault) -> Result
  ) throws(SQLFault) -> Result {
    do throws(FleetFault) { return try body(self) } catch {
      if case .database(let cause) = error { throw cause }
      fault = error
      throw .misuse
    }
  }

  /// Runs a statement and returns the number of rows that it changed.
  @discardableResult
  func run(_ sql: StaticString, _ values: Value...) throws(FleetFault) -> Int {
    do throws(SQLFault) { return try session.execute(sql, values: values).changedRowCount } catch {
      throw .database(error)
    }
  }

  /// Runs a query and returns all rows.
  func rows(_ sql: StaticString, _ values: Value...) throws(FleetFault) -> [SQLRow] {
    try rows(sql, values: values)
  }

  /// Runs a query and returns all rows.
  func rows(_ sql: StaticString, values: [Value]) throws(FleetFault) -> [SQLRow] {
    do throws(SQLFault) { return try session.execute(sql, values: values).rows } catch { throw .database(error) }
  }

  /// Runs a query and returns its first row; nil if there is none.
  func row(_ sql: StaticString, _ values: Value...) throws(FleetFault) -> SQLRow? {
    try rows(sql, values: values).first
  }

  /// Sends a query of at most one row. The answers to all queries that were sent arrive when the first of them is read, and in
  /// one round trip.
  ///
  /// - Parameters:
  ///   - sql: The query.
  ///   - values: Its values.
  ///   - decode: Reads the row.
  func lookUp<Found>(
    _ sql: StaticString, _ values: Value..., decode: @escaping (SQLRow) throws(FleetFault) -> Found
  ) throws(FleetFault) -> LookUp<Found> {
    do throws(SQLFault) { return LookUp(answer: try session.send(sql, values: values), decode: decode) } catch {
      throw .database(error)
    }
  }

  /// Sends a change whose answer nobody needs: it runs together with the next query, or with the commit.
  func send(_ sql: StaticString, _ values: Value...) throws(FleetFault) {
    do throws(SQLFault) { try session.send(sql, values: values) } catch { throw .database(error) }
  }

  /// Reads columns. A column of another type than expected means that the database is damaged.
  func decoding<Result>(_ body: () throws(SQLFault) -> Result) throws(FleetFault) -> Result {
    do throws(SQLFault) { return try body() } catch { throw .corrupt }
  }

  /// Writes an entry into the log of changes, which nobody can alter: the detail, and the reason that the actor gave.
  func log(_ action: StaticString, _ object: String, by actor: Actor, _ detail: String = "") throws(FleetFault) {
    let details = [detail, actor.reason].filter { !$0.isEmpty }
    try run(
      "INSERT INTO changes (moment, actor, action, object, detail) VALUES ($1, $2, $3, $4, $5)", .unsigned(now),
      .text(actor.name), .text(action.description), .text(object), .text(details.joined(separator: ": ")))
  }
}

/// A query of at most one row that was sent in a transaction.
struct LookUp<Found> {
  fileprivate let answer: SQLAnswer
  fileprivate let decode: (SQLRow) throws(FleetFault) -> Found

  /// Waits for the row, and returns what was found; nil if there is no row.
  func found() throws(FleetFault) -> Found? {
    let row: SQLRow?
    do throws(SQLFault) { row = try answer.read().rows.first } catch { throw .database(error) }
    guard let row else { return nil }
    return try decode(row)
  }
}

/// A person or a program that changes the service's records, by the name that the log of changes shows.
package struct Actor: Sendable, Equatable {
  /// The name, at most 64 bytes.
  package let name: String
  /// The reason of the change, where the actor gave one.
  package let reason: String

  /// Creates an actor.
  package init(_ name: String, reason: String = "") { (self.name, self.reason) = (name, reason) }

  /// The service itself, where a prover's request changes a record.
  static let service = Actor("service")
}

/// The reasons why the service could not answer. None contains a secret or data.
package enum FleetFault: Error, Equatable, Sendable {
  /// The database failed.
  case database(SQLFault)
  /// The database has the tables, but no service was created in it.
  case notCreated
  /// A service was created in the database already.
  case alreadyCreated
  /// The service key is not the one with which the keys in the database were encrypted.
  case wrongServiceKey
  /// The database contains a value that the service does not write.
  case corrupt
  /// There is no clock, or it was set while the service ran.
  case noClock
  /// libcrypto or the random source failed.
  case cryptography
}
