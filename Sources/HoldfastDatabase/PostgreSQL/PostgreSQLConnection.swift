import CPostgreSQL
import Glibc
import HoldfastLinux
import HoldfastStorage

/// A connection to a PostgreSQL server. Only this type calls libpq on a connection.
///
/// The pool lends it to one thread at a time; hence unchecked.
@safe final class PostgreSQLConnection: @unchecked Sendable {
  private let handle: OpaquePointer
  private let notices = PostgreSQLNotices()
  /// The names of the prepared statements.
  private var names: [StatementKey: String] = [:]
  /// The facts that the server stated about itself when the connection was made.
  var server = PostgreSQLServerState()

  /// A statement and the types of its values, by which the server chooses functions and operators.
  private struct StatementKey: Hashable {
    let address: UInt
    let types: [Oid]

    init(_ statement: PostgreSQLStatement) {
      address = UInt(bitPattern: unsafe statement.sql.utf8Start)
      types = statement.values.types
    }
  }

  /// Connects to one host.
  ///
  /// - Parameters:
  ///   - settings: libpq's keywords with their values.
  ///   - deadline: The moment by which the host must have accepted the connection.
  ///   - answerDeadline: The moment by which the server must have answered a connection that its host accepted.
  /// - Throws: `unavailable`, `permission`, `busy`, `missing` (no such database), `other`.
  init(settings: [String: String], deadline: Deadline, answerDeadline: Deadline) throws(SQLFault) {
    let pairs = Array(settings)
    let opened = unsafe withCStrings(pairs.map(\.key)) { keywords in
      unsafe withCStrings(pairs.map(\.value)) { values in unsafe PQconnectStartParams(keywords, values, 0) }
    }
    guard let handle = unsafe opened else { throw .unavailable }
    unsafe self.handle = handle
    // The text of an error ends with its code then, whatever the language of the server.
    unsafe PQsetErrorVerbosity(handle, PQERRORS_SQLSTATE)
    unsafe PQsetNoticeReceiver(
      handle,
      { notices, result in
        guard let notices = unsafe notices, let result = unsafe result else { return }
        unsafe Unmanaged<PostgreSQLNotices>.fromOpaque(notices).takeUnretainedValue().receive(result)
      }, Unmanaged.passUnretained(notices).toOpaque())
    try connect(until: deadline, answerUntil: answerDeadline)
    guard unsafe PQsetnonblocking(handle, 1) == 0 else { throw .unavailable }
  }

  deinit {
    unsafe PQfinish(handle)
  }

  /// Whether the server has not ended the connection, as far as is known here.
  var isAlive: Bool {
    while wait(for: POLLIN, until: Deadline(afterMilliseconds: 0)) {
      guard unsafe PQconsumeInput(handle) == 1 else { return false }
      _ = unsafe PQisBusy(handle)
    }
    return unsafe PQstatus(handle) == CONNECTION_OK && notices.fatalCode == nil
  }

  /// Whether the server has sent a warning since the last statement began.
  var hasWarned: Bool { notices.hasWarned }

  /// Runs a script of any number of statements.
  ///
  /// - Returns: The result of each statement.
  func run(script: String, until deadline: Deadline) throws(PostgreSQLFailure) -> [PostgreSQLResult] {
    notices.hasWarned = false
    return try results(wasSent: unsafe PQsendQuery(handle, script) == 1, until: deadline)
  }

  /// Runs statements with their values: all are sent at once, and the answers are read after that. Statements that this
  /// connection has not run yet are prepared. After one that fails, the server skips the rest, and a COMMIT among them.
  ///
  /// Source: PostgreSQL 15, 34.5 Pipeline Mode.
  ///
  /// - Parameters:
  ///   - statements: The statements, in order.
  ///   - deadline: The moment by which the server has answered the next statement.
  /// - Returns: The result of each statement.
  func run(
    _ statements: [PostgreSQLStatement], until deadline: () -> Deadline
  ) throws(PostgreSQLFailure) -> [PostgreSQLResult] {
    notices.hasWarned = false
    guard unsafe PQenterPipelineMode(handle) == 1 else { throw lost }
    var commands: [Command] = []
    for statement in statements { try send(statement, &commands) }
    guard unsafe PQpipelineSync(handle) == 1 else { throw lost }
    try flush(until: deadline())
    var results: [PostgreSQLResult] = []
    var failure: PostgreSQLFailure?
    for command in commands {
      // Nothing follows the result of a command.
      guard let result = try next(until: deadline()), try next(until: deadline()) == nil else { throw failure ?? lost }
      if let failed = result.failure { failure = failure ?? failed }
      switch command {
      case .prepare(let key): if result.failure != nil { names[key] = nil }
      case .run: results.append(result)
      }
      if let failure, failure.isConnectionLost { throw failure }
    }
    guard try next(until: deadline())?.endsPipeline == true, unsafe PQexitPipelineMode(handle) == 1 else { throw lost }
    if let failure { throw failure }
    return results
  }

  /// A command of a pipeline.
  private enum Command {
    case prepare(StatementKey), run
  }

  private func send(_ statement: PostgreSQLStatement, _ commands: inout [Command]) throws(PostgreSQLFailure) {
    let key = StatementKey(statement)
    if names[key] == nil {
      let text = Dialect.postgreSQL(statement.sql.description)
      let name = "s\(names.count)"
      guard unsafe PQsendPrepare(handle, name, text, Int32(key.types.count), key.types) == 1 else { throw lost }
      names[key] = name
      commands.append(.prepare(key))
    }
    let wasSent = unsafe statement.values.withParameters { parameters, lengths, formats in
      unsafe PQsendQueryPrepared(handle, names[key], Int32(key.types.count), parameters, lengths, formats, 1) == 1
    }
    guard wasSent else { throw lost }
    commands.append(.run)
  }
}

// Waiting: libpq never blocks, so that a server that keeps silent cannot hold a thread.
extension PostgreSQLConnection {
  private func connect(until deadline: Deadline, answerUntil answerDeadline: Deadline) throws(SQLFault) {
    var state = PGRES_POLLING_WRITING
    while state != PGRES_POLLING_OK {
      guard state != PGRES_POLLING_FAILED else { throw connectionFault }
      let isAccepted = unsafe PQstatus(handle) != CONNECTION_STARTED
      let event = state == PGRES_POLLING_READING ? POLLIN : POLLOUT
      guard wait(for: event, until: isAccepted ? answerDeadline : deadline) else { throw .unavailable }
      state = unsafe PQconnectPoll(handle)
    }
  }

  /// The reason why the server refused the connection. libpq has it only as a text, which ends with the code.
  private var connectionFault: SQLFault {
    if unsafe PQconnectionNeedsPassword(handle) == 1 { return .permission }
    guard let message = unsafe PQerrorMessage(handle) else { return .unavailable }
    let codes = unsafe String(cString: message).split(separator: "\n").compactMap { line -> String? in
      guard let space = line.lastIndex(of: " "), line[..<space].hasSuffix(": ") else { return nil }
      let code = line[space...].dropFirst()
      let isCode =
        code.utf8.count == 5 && code.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) }
      return isCode ? String(code) : nil
    }
    return codes.last.map { SQLFault(sqlState: $0) } ?? .unavailable
  }

  private func results(wasSent: Bool, until deadline: Deadline) throws(PostgreSQLFailure) -> [PostgreSQLResult] {
    guard wasSent else { throw lost }
    try flush(until: deadline)
    var results: [PostgreSQLResult] = []
    var failure: PostgreSQLFailure?
    while let result = try next(until: deadline) {
      if let failed = result.failure { failure = failure ?? failed } else { results.append(result) }
    }
    guard unsafe PQstatus(handle) == CONNECTION_OK else {
      throw failure.flatMap { $0.isConnectionLost ? $0 : nil } ?? lost
    }
    if let failure { throw failure }
    return results
  }

  /// Waits for the next result; nil at the end of those of one command.
  private func next(until deadline: Deadline) throws(PostgreSQLFailure) -> PostgreSQLResult? {
    while unsafe PQisBusy(handle) == 1 {
      guard wait(for: POLLIN, until: deadline) else { throw lost }
      // After an error, PQgetResult returns it without waiting.
      guard unsafe PQconsumeInput(handle) == 1 else { break }
    }
    return unsafe PQgetResult(handle).map { unsafe PostgreSQLResult(adopting: $0) }
  }

  private func flush(until deadline: Deadline) throws(PostgreSQLFailure) {
    while true {
      switch unsafe PQflush(handle) {
      case 0: return
      case 1: guard wait(for: POLLIN | POLLOUT, until: deadline) else { throw lost }
      // The server may have said why it ended the connection: PQgetResult returns that.
      default: return
      }
      guard unsafe PQconsumeInput(handle) == 1 else { return }
    }
  }

  /// The failure of a connection that ended, with the server's reason if it gave one.
  var lost: PostgreSQLFailure {
    PostgreSQLFailure(fault: notices.fatalCode.map { SQLFault(sqlState: $0) } ?? .unavailable, isConnectionLost: true)
  }

  private func wait(for events: Int32, until deadline: Deadline) -> Bool {
    while true {
      let socket = unsafe PQsocket(handle)
      // Where libpq has closed it, the next call says so.
      guard socket >= 0 else { return true }
      var waited = pollfd(fd: socket, events: CShort(events), revents: 0)
      let count = unsafe poll(&waited, 1, Int32(clamping: deadline.remainingMilliseconds))
      if count > 0 { return true }
      if count < 0 && errno != EINTR { return false }
      if deadline.hasPassed { return false }
    }
  }
}

/// A failure of a statement.
struct PostgreSQLFailure: Error {
  let fault: SQLFault
  /// Whether the connection is of no more use.
  let isConnectionLost: Bool
}

/// The messages that the server sent in addition to results. They arrive while libpq is called on the connection.
final class PostgreSQLNotices {
  var hasWarned = false
  /// The code of the message with which the server ended the connection.
  private(set) var fatalCode: String?

  func receive(_ result: OpaquePointer) {
    switch unsafe errorField(holdfast_severity, of: result) {
    case "WARNING": hasWarned = true
    case "FATAL", "PANIC": fatalCode = unsafe errorField(holdfast_sql_state, of: result)
    default: break
    }
  }
}

/// Returns a field of an error or notice; nil if it has none.
func errorField(_ field: Int32, of result: OpaquePointer) -> String? {
  unsafe PQresultErrorField(result, field).map { unsafe String(cString: $0) }
}

/// Calls `body` with a list of C strings that ends with a null pointer.
private func withCStrings<Result>(
  _ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
) -> Result {
  let copies = unsafe texts.map { unsafe strdup($0) }
  defer { for index in texts.indices { unsafe free(copies[index]) } }
  let list = unsafe copies.map { unsafe UnsafePointer($0) } + [nil]
  return unsafe list.withUnsafeBufferPointer { unsafe body($0.baseAddress!) }
}
