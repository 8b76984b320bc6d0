import CPostgreSQL

/// The settings of the connections to each host of a URL.
package struct PostgreSQLSettings: Sendable {
  /// For each host, libpq's keywords with their values.
  package let hosts: [[String: String]]
  /// The time that a host has for making a connection; `Int.max` for no limit.
  package let connectMilliseconds: Int

  /// Splits a URL into its hosts, and adds the settings that it does not have.
  ///
  /// libpq itself could try several hosts, but takes the first that permits writing: a former primary, perhaps.
  ///
  /// Source: PostgreSQL 15, 34.1.1 Connection Strings.
  ///
  /// - Parameters:
  ///   - url: A URL that begins with `postgresql://` or `postgres://`.
  ///   - name: The name that the server shows for the connections.
  /// - Throws: `misuse` if the URL is malformed.
  package init(url: String, name: String) throws(SQLFault) {
    guard url.hasPrefix("postgresql://") || url.hasPrefix("postgres://"), !url.utf8.contains(0) else { throw .misuse }
    let given = try Self.parse(url)
    var settings = Self.defaults.merging(["application_name": name]) { $1 }.merging(given) { $1 }
    // Of two settings of the same name, the last one counts: the URL's.
    settings["options"] = Self.serverSettings + (given["options"].map { " " + $0 } ?? "")
    // Texts are UTF-8 in Swift, too.
    settings["client_encoding"] = "UTF8"
    hosts = try Self.split(settings)
    let seconds = settings["connect_timeout"].flatMap { Int($0) } ?? 0
    // libpq takes 1 for 2, too, and anything below for no limit.
    connectMilliseconds = seconds > 0 ? max(seconds, 2) * 1000 : .max
  }

  /// A host that no longer answers is noticed within 10 s: 3 s without a message, then 3 questions every 2 s.
  private static let defaults = [
    "connect_timeout": "2", "tcp_user_timeout": "9000", "keepalives": "1", "keepalives_idle": "3",
    "keepalives_interval": "2", "keepalives_count": "3",
  ]

  private static let serverSettings =
    "-c statement_timeout=10s -c lock_timeout=5s -c idle_in_transaction_session_timeout=15s"

  private static func parse(_ url: String) throws(SQLFault) -> [String: String] {
    guard let options = unsafe PQconninfoParse(url, nil) else { throw .misuse }
    defer { unsafe PQconninfoFree(options) }
    var settings: [String: String] = [:]
    var option = unsafe options
    while let keyword = unsafe option.pointee.keyword {
      if let value = unsafe option.pointee.val {
        unsafe settings[String(cString: keyword)] = unsafe String(cString: value)
      }
      unsafe option += 1
    }
    return settings
  }

  private static func split(_ settings: [String: String]) throws(SQLFault) -> [[String: String]] {
    let lists = ["host", "hostaddr", "port"].compactMap { keyword in
      settings[keyword].map { ($0.split(separator: ",", omittingEmptySubsequences: false), keyword) }
    }
    let count = lists.filter { $0.1 != "port" }.map(\.0.count).max() ?? 1
    var hosts = Array(repeating: settings, count: count)
    for (values, keyword) in lists {
      guard values.count == count || keyword == "port" && values.count == 1 else { throw .misuse }
      for index in hosts.indices { hosts[index][keyword] = String(values[values.count == 1 ? 0 : index]) }
    }
    return hosts
  }
}
