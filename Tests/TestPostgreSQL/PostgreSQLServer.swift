import Foundation
import HoldfastLinux
import Synchronization
import TestSupport

/// A real PostgreSQL server in a temporary folder, which ends with the test process.
///
/// Over its socket, everyone who may enter the folder is `postgres`; over loopback, at which only ``sharedServer``
/// listens, roles need a password.
package final class PostgreSQLServer: Sendable {
  /// Whether this machine has PostgreSQL.
  package static let isInstalled = programFolder != nil
  /// The reason that skipped tests show.
  package static let absence = "PostgreSQL is not installed"

  package let folder: TemporaryFolder
  /// The number in the socket's name, which is also the port on loopback.
  package let port: Int
  private let run = Mutex<PostgreSQLRun?>(nil)

  /// Creates a primary that is not started.
  ///
  /// - Parameter settings: Lines for `postgresql.conf`.
  package init(_ settings: String...) throws {
    folder = try Self.makeFolder()
    port = try Self.freePort()
    try Self.command("cp", "-a", Self.template.get().file("data"), folder.file("data"))
    try configure(settings)
  }

  /// Creates a primary with a new system identifier.
  package static func unrelated() throws -> PostgreSQLServer {
    try PostgreSQLServer(initializing: makeFolder())
  }

  /// Creates a standby of a running server, which is not started.
  ///
  /// - Parameter name: Its name for `synchronous_standby_names`.
  package init(standbyOf primary: PostgreSQLServer, name: String) throws {
    folder = try Self.makeFolder()
    port = try Self.freePort()
    let source = "host=\(primary.folder.path) port=\(primary.port) user=postgres application_name=\(name)"
    try Self.program(
      "pg_basebackup", "--checkpoint=fast", "--no-sync", "--write-recovery-conf", "-d", source, "-D",
      folder.file("data"))
    try configure([])
  }

  private init(initializing folder: TemporaryFolder) throws {
    try Self.initialize(folder)
    self.folder = folder
    port = try Self.freePort()
    try configure([])
  }

  deinit { run.withLock { $0?.end(.fast) } }

  /// Starts the server, and waits until it accepts connections.
  package func start() throws {
    guard let programs = Self.programFolder else { throw ServerError(text: Self.absence) }
    // The server must not outlive the tests, even if they crash.
    let started = try PostgreSQLRun(
      Self.asOwner(["\(programs)/postgres", "-D", folder.file("data")], pointOfDeath: "QUIT"))
    try started.wait(for: "ready to accept")
    run.withLock { $0 = started }
  }

  /// Ends the server in an order that it knows, and waits until all its processes have ended.
  package func stop(_ end: PostgreSQLRun.End = .fast) {
    run.withLock { $0.take()?.end(end) }
  }

  /// Kills all processes of the server at once, as a power cut would.
  package func kill() { stop(.killed) }

  /// Suspends all processes of the server; its connections stay open, and nobody answers.
  package func suspend() { run.withLock { $0?.signal(SIGSTOP) } }

  /// Continues a suspended server.
  package func resume() { run.withLock { $0?.signal(SIGCONT) } }

  /// Waits until the log has a line that contains the text.
  package func wait(for text: String) throws { try run.withLock { $0 }?.wait(for: text) }

  /// Makes a standby the primary.
  package func promote() throws {
    try Self.program("pg_ctl", "promote", "--wait", "-D", folder.file("data"))
  }

  /// Runs SQL as the superuser, and returns the lines of its result.
  @discardableResult
  package func execute(_ sql: String, database: String = "postgres") throws -> [String] {
    try Self.program(
      "psql", "--no-psqlrc", "-qAt", "-v", "ON_ERROR_STOP=1", "-h", folder.path, "-p", String(port), "-U", "postgres",
      "-d", database, "-c", sql
    ).split(separator: "\n").map(String.init)
  }

  /// Waits until a query returns one line with this text.
  package func wait(until sql: String, is expected: String = "t") throws {
    let deadline = Deadline(afterMilliseconds: 300_000)
    while try execute(sql) != [expected] {
      guard !deadline.hasPassed else { throw ServerError(text: "never: \(sql)") }
    }
  }

  /// Creates a database and returns its name.
  package func makeDatabase() throws -> String {
    let name = "test\(Self.count.add(1, ordering: .relaxed).newValue)"
    try execute("CREATE DATABASE \(name)")
    return name
  }

  /// Returns a URL of a database on this server and others, which are tried in this order, over their sockets. A new
  /// connection, a statement and a lock have a minute each, in place of the service's few seconds, which may be too
  /// short while the processors are busy.
  ///
  /// - Parameter options: Further settings, which replace those above, as `connect_timeout=2`.
  package func url(_ database: String, with others: PostgreSQLServer..., options: String = "") -> String {
    let servers = [self] + others
    let hosts = servers.map(\.folder.path).joined(separator: ",")
    let ports = servers.map { String($0.port) }.joined(separator: ",")
    return "postgresql:///\(database)?user=postgres&host=\(hosts)&port=\(ports)&\(Self.patience)"
      + (options.isEmpty ? "" : "&" + options)
  }

  /// Adds lines to `postgresql.conf`.
  package func configure(_ settings: [String]) throws {
    let address = "port = \(port)\nunix_socket_directories = '\(folder.path)'\n"
    let path = folder.file("data/postgresql.conf")
    let text = try String(contentsOfFile: path, encoding: .utf8) + address + settings.joined(separator: "\n") + "\n"
    // In place: the file keeps its owner.
    guard let file = FileHandle(forWritingAtPath: path) else { throw ServerError(text: path) }
    try file.write(contentsOf: Data(text.utf8))
  }

  /// Reads the configuration again.
  package func reload() throws { try execute("SELECT pg_reload_conf()") }

  private static let count = Atomic(0)
  private static let patience =
    "connect_timeout=60&options=-c%20statement_timeout%3D60s%20-c%20lock_timeout%3D60s"
    + "%20-c%20idle_in_transaction_session_timeout%3D600s"
}

/// A server that is started once, for all tests that do not stop it. Each test creates a database on it.
package let sharedServer = Result {
  let server = try PostgreSQLServer("listen_addresses = '127.0.0.1'")
  try server.start()
  keptServer.withLock { $0 = server }
  atexit {
    guard let server = keptServer.withLock({ $0 }) else { return }
    server.stop(.immediate)
    try? FileManager.default.removeItem(atPath: server.folder.path)
  }
  return server
}

private let keptServer = Mutex<PostgreSQLServer?>(nil)

/// A reason why a server could not be used.
package struct ServerError: Error, CustomStringConvertible {
  let text: String
  package var description: String { text }
}

// Programs of PostgreSQL, and folders for them.
extension PostgreSQLServer {
  /// Debian keeps each version's programs in a folder.
  private static let programFolder: String? = {
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
    let newest = versions.compactMap { Int($0) }.max().map { ["/usr/lib/postgresql/\($0)/bin"] } ?? []
    return (newest + ["/usr/bin", "/usr/local/bin"]).first {
      FileManager.default.isExecutableFile(atPath: $0 + "/postgres")
    }
  }()

  /// The data of a new server, which takes a second to make and is copied.
  private static let template = Result {
    let folder = try makeFolder()
    try initialize(folder)
    keptTemplate.withLock { $0 = folder }
    atexit {
      PostgreSQLServer.keptTemplate.withLock { folder in
        if let folder { try? FileManager.default.removeItem(atPath: folder.path) }
      }
    }
    return folder
  }

  private static let keptTemplate = Mutex<TemporaryFolder?>(nil)

  private static func initialize(_ folder: TemporaryFolder) throws {
    try program(
      "initdb", "--no-sync", "--wal-segsize=1", "--no-instructions", "--username=postgres", "--auth-local=trust",
      "--auth-host=scram-sha-256", "--locale=C.UTF-8", "--encoding=UTF8", "-D", folder.file("data"))
    let settings = """
      listen_addresses = ''
      max_connections = 60
      shared_buffers = 16MB
      fsync = off
      autovacuum = off
      log_checkpoints = off
      wal_keep_size = 128MB
      hot_standby_feedback = on
      wal_receiver_status_interval = 1s
      wal_retrieve_retry_interval = 10ms

      """
    try append(settings, to: folder.file("data/postgresql.conf"))
  }

  private static func append(_ text: String, to path: String) throws {
    guard let file = FileHandle(forUpdatingAtPath: path) else { throw ServerError(text: path) }
    try file.seekToEnd()
    try file.write(contentsOf: Data(text.utf8))
  }

  /// PostgreSQL refuses to run as root, so root gives the folder to another user.
  private static func makeFolder() throws -> TemporaryFolder {
    let folder = try TemporaryFolder(in: "/tmp")
    if geteuid() == 0 { try command("chown", "postgres:postgres", folder.path) }
    return folder
  }

  private static func asOwner(_ arguments: [String], pointOfDeath signal: String = "keep") -> [String] {
    let identity = geteuid() == 0 ? ["--reuid=postgres", "--regid=postgres", "--clear-groups"] : []
    return ["setpriv", "--pdeathsig=\(signal)"] + identity + arguments
  }

  @discardableResult
  private static func program(_ name: String, _ arguments: String...) throws -> String {
    guard let programFolder else { throw ServerError(text: absence) }
    return try command(asOwner(["\(programFolder)/\(name)"] + arguments))
  }

  @discardableResult
  package static func command(_ arguments: String...) throws -> String { try command(arguments) }

  private static func command(_ arguments: [String]) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: "/")
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw ServerError(text: "\(arguments): \(text)") }
    return text
  }

  private static func freePort() throws -> Int {
    let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(number) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let failed = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(number, $0, length) != 0 || getsockname(number, $0, &length) != 0
      }
    }
    guard !failed else { throw ServerError(text: "no free port") }
    return Int(UInt16(bigEndian: address.sin_port))
  }
}
