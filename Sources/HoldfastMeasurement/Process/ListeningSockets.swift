import CHost
import Glibc

/// Which TCP ports somebody listens on, as far as this process can see.
enum ListeningSockets {
  /// Whether any address listens on `port`. A listener for both families shows in either.
  static func contain(port: UInt16, _ files: HostFiles) throws(MeasurementError) -> Bool {
    for (family, path) in [(AF_INET, "/proc/net/tcp"), (AF_INET6, "/proc/net/tcp6")] {
      if try isListening(port, family, path, files) { return true }
    }
    return false
  }

  /// Asks the kernel, or reads its table where it does not answer or a test has laid one out.
  private static func isListening(
    _ port: UInt16, _ family: Int32, _ path: String, _ files: HostFiles
  ) throws(MeasurementError) -> Bool {
    if files.isLive {
      let answer = holdfast_is_listening(family, port)
      if answer >= 0 { return answer == 1 }
    }
    let table = try files.contentsIfPresent(of: path, as: .sockets) ?? []
    return table.lines.contains { isListener($0, on: port) }
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
