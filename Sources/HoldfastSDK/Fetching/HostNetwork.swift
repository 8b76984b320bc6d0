import HoldfastLinux

/// The ways from this host to other networks.
package enum HostNetwork {
  /// Whether the kernel has a default route. Services on this host need none.
  static var hasDefaultRoute: Bool {
    hasDefaultRoute(ipv4: contents(of: "/proc/net/route"), ipv6: contents(of: "/proc/net/ipv6_route"))
  }

  /// Returns whether one of the kernel's tables has a default route that is not the one of the loopback interface, by which IPv6
  /// refuses what it cannot reach.
  ///
  /// Source: Linux, fib_route_seq_show in net/ipv4/fib_trie.c, rt6_info_route in net/ipv6/route.c.
  package static func hasDefaultRoute(ipv4: String, ipv6: String) -> Bool {
    // Interface, destination, gateway, flags, three counters, mask. The first line has titles.
    lines(ipv4).contains { $0.count >= 8 && $0[1] == "00000000" && $0[7] == "00000000" && $0[0] != "lo" }
      // Destination, its prefix, source, its prefix, next hop, four numbers, interface.
      || lines(ipv6).contains {
        $0.count >= 10 && $0[0].allSatisfy { $0 == "0" } && $0[1] == "00" && $0[9] != "lo"
      }
  }

  private static func lines(_ table: String) -> [[Substring]] {
    table.split(separator: "\n").map { $0.split(whereSeparator: { $0 == "\t" || $0 == " " }) }
  }

  private static func contents(of path: String) -> String {
    String(decoding: (try? Files.readFile(at: path, limit: 1 << 20)) ?? [], as: UTF8.self)
  }
}
