import Glibc

/// Whether secrets in memory can reach a disk.
public enum Swap {
  /// Whether this process's memory may be swapped out, on this system, now.
  public static var isPossible: Bool {
    isOn(swaps: read("/proc/swaps")) && !isLocked(status: read("/proc/self/status"))
  }

  /// Whether the kernel swaps anywhere. Where it does not say, it may.
  ///
  /// Source: proc_swaps(5): a line of titles, then one for each area.
  static func isOn(swaps: String) -> Bool {
    let lines = swaps.split(separator: "\n")
    return lines.isEmpty || lines.count > 1
  }

  /// Whether memory is locked.
  ///
  /// Source: proc_pid_status(5): `VmLck:`, blanks, kibibytes, ` kB`.
  static func isLocked(status: String) -> Bool {
    guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmLck:") }) else { return false }
    return line.dropFirst(6).split(whereSeparator: { $0 == " " || $0 == "\t" }).first.flatMap { UInt64($0) } ?? 0 > 0
  }

  /// The first 64 KiB of a file; nothing when it cannot be read.
  private static func read(_ path: String) -> String {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    let count = unsafe bytes.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
    return String(decoding: bytes[..<max(count, 0)], as: UTF8.self)
  }
}
