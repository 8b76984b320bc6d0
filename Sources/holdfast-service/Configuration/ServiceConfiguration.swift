#if Service
import HoldfastDatabase
import HoldfastFormats
import HoldfastLinux
import HoldfastOnline

/// The settings of one instance: the file of `--config`, whose members are all optional.
///
/// Everything that instances share is in the database.
struct ServiceConfiguration: Sendable, Equatable {
  /// The address at which the service listens: a host and a port.
  var host = "127.0.0.1"
  var port: UInt64 = 8443
  /// The files with the certificate chain and its private key, in PEM, or the names of credentials that systemd passes. Without
  /// them, the service listens only on loopback, and without TLS.
  var certificate: String?
  var key: String?
  /// A URL of PostgreSQL; nil for SQLite in the service's folder.
  var database: String?
  /// The number of connections to the database, which is that of the threads that use it.
  var databaseConnections: UInt64 = 8
  /// The addresses by which provers reach the service, for the QR codes of invitations. None if it is not configured.
  var publicAddresses: [ServiceAddress] = []
  /// The largest number of network connections.
  var maximumConnections: UInt64 = 20_000
  /// The seconds after which a connection without a request ends.
  var idleSeconds: UInt64 = 60
  /// The seconds within which the body of a request must arrive.
  var bodySeconds: UInt64 = 10
  /// The requests that one address may make within a minute.
  var requestsPerMinute: UInt64 = 600
  /// Whether the service has the console.
  var hasConsole = true
  /// The seconds after which an operator has to sign in to the console again.
  var sessionSeconds: UInt64 = 8 * 3600
  /// A text that tells people whom to ask for help, in each refusal; nil for none.
  var help: String?
  /// The least severe log entries that are written.
  var logLevel = "info"

  private static let logLevels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]

  /// Creates the defaults.
  init() {}

  /// Reads a configuration. Unknown members are refused.
  init(_ json: JSONMember) throws(JSONMistake) {
    let names = JSONMember(ServiceConfiguration().json).value.members?.map(\.0) ?? []
    try json.checkMembers(names)
    if let member = json.member("listen") {
      let text = try member.text(byteCounts: 3...128)
      guard let colon = text.lastIndex(of: ":"), let port = UInt64(text[text.index(after: colon)...]), port < 65_536,
        colon > text.startIndex
      else { throw member.mistake(.text(of: ["HOST:PORT"])) }
      (host, self.port) = (text[..<colon].trimming("[", "]"), port)
    }
    certificate = try json.member("certificate").flatMap { member throws(JSONMistake) in try member.path() }
    key = try json.member("key").flatMap { member throws(JSONMistake) in try member.path() }
    database = try json.member("database").flatMap { member throws(JSONMistake) in try member.path() }
    if let member = json.member("public_url"), let text = try member.path() {
      do throws(ServiceAddressFault) { publicAddresses = try ServiceAddress.list(text) } catch {
        throw member.mistake(.form("https://HOST, https://HOST:PORT, or several of them with commas between them"))
      }
    }
    if let member = json.member("database_connections") { databaseConnections = try member.integer(1...256) }
    if let member = json.member("maximum_connections") { maximumConnections = try member.integer(1...1_000_000) }
    if let member = json.member("idle_seconds") { idleSeconds = try member.integer(1...3600) }
    if let member = json.member("body_seconds") { bodySeconds = try member.integer(1...600) }
    if let member = json.member("requests_per_minute") { requestsPerMinute = try member.integer(1...1_000_000) }
    if let member = json.member("console") { hasConsole = try member.flag() }
    if let member = json.member("session_seconds") { sessionSeconds = try member.integer(1...(30 * 86_400)) }
    if let member = json.member("log_level") {
      guard let level = member.value.text, Self.logLevels.contains(level) else {
        throw member.mistake(.text(of: Self.logLevels))
      }
      logLevel = level
    }
    if let member = json.member("help"), member.value != .null {
      let text = try member.text(byteCounts: 1...255)
      guard haveSameBytes(text, text.printable) else {
        throw member.mistake(.form("a text without control characters"))
      }
      help = text
    }
    guard (certificate == nil) == (key == nil) else {
      throw JSONMistake(at: [.member(certificate == nil ? "certificate" : "key")], expected: .presence)
    }
    if certificate == nil, !isLoopback { throw JSONMistake(at: [.member("certificate")], expected: .presence) }
  }

  /// Whether the service is reached only from its own host.
  var isLoopback: Bool { ["127.0.0.1", "::1", "localhost"].contains(host) }

  /// The configuration with all members.
  var json: JSONValue {
    func text(_ value: String?) -> JSONValue { value.map { .string($0) } ?? .null }
    return .object([
      ("listen", .string(host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)")),
      ("certificate", text(certificate)), ("key", text(key)), ("database", text(database.map(Self.withoutPassword))),
      ("database_connections", .integer(databaseConnections)),
      ("public_url", text(publicAddresses.isEmpty ? nil : publicAddresses.map(\.description).joined(separator: ","))),
      ("maximum_connections", .integer(maximumConnections)), ("idle_seconds", .integer(idleSeconds)),
      ("body_seconds", .integer(bodySeconds)), ("requests_per_minute", .integer(requestsPerMinute)),
      ("console", .bool(hasConsole)), ("session_seconds", .integer(sessionSeconds)), ("log_level", .string(logLevel)),
      ("help", text(help)),
    ])
  }

  /// Whether a URL of a database has a password, as the user's or as a parameter.
  static func hasPassword(_ url: String) -> Bool { withoutPassword(url) != url }

  /// A URL in which a password is replaced by an asterisk.
  private static func withoutPassword(_ url: String) -> String {
    var url = url
    if let value = url.firstRange(of: "password=") {
      let end = url[value.upperBound...].firstIndex(of: "&") ?? url.endIndex
      url.replaceSubrange(value.upperBound..<end, with: "*")
    }
    guard let at = url.lastIndex(of: "@"), let scheme = url.firstRange(of: "://"), scheme.upperBound <= at,
      let colon = url[scheme.upperBound..<at].firstIndex(of: ":")
    else { return url }
    return url[...colon] + "*" + url[at...]
  }
}

extension JSONMember {
  /// Reads a text; nil for null.
  fileprivate func path() throws(JSONMistake) -> String? {
    if value == .null { return nil }
    return try text(byteCounts: 1...4096)
  }
}

extension Substring {
  fileprivate func trimming(_ first: Character, _ last: Character) -> String {
    self.first == first && self.last == last ? String(dropFirst().dropLast()) : String(self)
  }
}
#endif
