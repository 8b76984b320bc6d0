import CHost
import Glibc

/// Which TCP ports somebody listens on, as far as this process can see.
enum ListeningSockets {
  /// Whether any address listens on `port`. A listener for both families shows in either.
  static func contain(port: UInt16, _ files: HostFiles) throws(MeasurementError) -> Bool {
    let first = try isListening(port, AF_INET, files) { () throws(MeasurementError) in
      try files.contents(of: "/proc/net/tcp", as: .sockets)
    }
    if first { return true }
    // A kernel without IPv6 has no such table.
    return try isListening(port, AF_INET6, files) { () throws(MeasurementError) in
      try files.contentsIfPresent(of: "/proc/net/tcp6", as: .sockets) ?? []
    }
  }

  /// Asks the kernel, or reads its table where it does not answer or a test has laid one out.
  private static func isListening(
    _ port: UInt16, _ family: Int32, _ files: HostFiles, table: () throws(MeasurementError) -> [UInt8]
  ) throws(MeasurementError) -> Bool {
    if files.isLive {
      let answer = holdfast_is_listening(family, port)
      if answer >= 0 { return answer == 1 }
    }
    return try table().lines.contains { isListener($0, on: port) }
  }

  /// Whether a line of the table is a listener on `port`.
  ///
  /// Source: proc_pid_net(5): `sl local_address:port remote_address:port state …`, hexadecimal; state 0A listens.
  static func isListener(_ line: ArraySlice<UInt8>, on port: UInt16) -> Bool {
    let fields = line.split(separator: 0x20, maxSplits: 4)
    guard fields.count > 3, fields[3].equals("0A") else { return false }
    return fields[1].suffix(4).hexadecimal == UInt64(port)
  }
}
