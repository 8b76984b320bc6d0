import Testing

import HoldfastDatabase

@Suite struct PostgreSQLSettingsTests {
  @Test func `a host that no longer answers is noticed within ten seconds, unless the URL says otherwise`() throws {
    let settings = try PostgreSQLSettings(url: "postgresql://a/b", name: "name")
    let host = try #require(settings.hosts.first)
    let number = { (keyword: String) in host[keyword].flatMap { Int($0) } ?? 0 }
    #expect(number("keepalives_idle") + number("keepalives_count") * number("keepalives_interval") < 10)
    #expect(number("tcp_user_timeout") < 10_000 && number("tcp_user_timeout") > 0)
    #expect(settings.connectMilliseconds == 2000)
    let own = try PostgreSQLSettings(
      url: "postgresql://a/b?connect_timeout=7&tcp_user_timeout=1&keepalives_idle=60&application_name=own", name: "name"
    )
    #expect(own.connectMilliseconds == 7000)
    #expect(own.hosts.first?["tcp_user_timeout"] == "1")
    #expect(own.hosts.first?["keepalives_idle"] == "60")
    #expect(own.hosts.first?["application_name"] == "own")
  }

  @Test(arguments: ["0", "-1"])
  func `a connection may wait without limit`(seconds: String) throws {
    let settings = try PostgreSQLSettings(url: "postgresql://a/b?connect_timeout=\(seconds)", name: "name")
    #expect(settings.connectMilliseconds == .max)
  }

  @Test(
    arguments: [
      ("postgresql://a,b/d", ["a", "b"], [nil, nil]),
      ("postgresql://a:1,b:2/d", ["a", "b"], ["1", "2"]),
      ("postgres:///d?host=/tmp/a,/tmp/b&port=5", ["/tmp/a", "/tmp/b"], ["5", "5"]),
      ("postgresql:///d", [nil], [nil]),
    ] as [(String, [String?], [String?])])
  func `a URL is split into its hosts`(url: String, hosts: [String?], ports: [String?]) throws {
    let settings = try PostgreSQLSettings(url: url, name: "name")
    #expect(settings.hosts.map { $0["host"] } == hosts)
    let named = settings.hosts.map { $0["port"] == "" ? nil : $0["port"] }
    #expect(named == ports)
    #expect(settings.hosts.allSatisfy { $0["dbname"] == "d" })
  }
}
