import CHost
import Glibc
import HoldfastLinux
import Synchronization

/// The files of this process that its user can open only while the process is dumpable: `mem`, `environ` and `pagemap`.
///
/// Source: proc(5), on `PR_SET_DUMPABLE`: otherwise they belong to root.
package enum ProcessFiles {
  private struct Kept {
    let process: pid_t
    let descriptors: [String: Int32]
  }

  private static let kept = Mutex<Kept?>(nil)

  /// Opens the files and keeps them open for every later measurement of this process.
  ///
  /// Call it before the process stops being dumpable, and before there are secrets in memory. Each measurement tries to open a
  /// missing file again, and then reports the error.
  package static func keepOpen() {
    var descriptors: [String: Int32] = [:]
    for path in ["/proc/self/mem", "/proc/self/environ", "/proc/self/pagemap"] {
      let descriptor = unsafe holdfast_open_proc(String(path.dropFirst("/proc/".utf8.count)))
      if descriptor >= 0 { descriptors[path] = descriptor }
    }
    kept.withLock { $0 = Kept(process: getpid(), descriptors: descriptors) }
  }

  /// Returns the file at `path` if this process has kept it. A forked child has separate memory, so its files are different.
  static func file(at path: String) throws(SystemError) -> Descriptor? {
    let kept = kept.withLock { $0 }
    guard let kept, kept.process == getpid(), let descriptor = kept.descriptors[path] else { return nil }
    return try Descriptor(sameAs: descriptor)
  }
}

/// The relevant fields of a thread's `status` file.
///
/// Source: proc_pid_status(5).
package struct ThreadStatus: Equatable {
  /// The thread's name, at most 15 bytes, escaped by the kernel.
  let name: [UInt8]
  /// Whether a process traces the thread.
  let isTraced: Bool
  /// The number of seccomp filters for its system calls; 1 for any number on a kernel before 5.9, which reports only whether
  /// there are any.
  let filterCount: Int

  /// Parses the status of a thread; throws `malformed` if a line is missing.
  package init(parsing text: [UInt8]) throws(MeasurementError) {
    var name: [UInt8]?
    var tracer: UInt64?
    var mode: UInt64 = 0
    var filters: UInt64?
    for line in text.lines {
      var value = line
      let label = value.take(until: 0x3a)
      if label.equals("Name") { name = Array(value.trimmed) }
      if label.equals("TracerPid") { tracer = value.trimmed.decimal }
      // A kernel without seccomp has neither line.
      if label.equals("Seccomp") { mode = try value.trimmed.count(.threads) }
      if label.equals("Seccomp_filters") { filters = try value.trimmed.count(.threads) }
    }
    guard let name, let tracer else { throw .malformed(.threads) }
    self.name = name
    isTraced = tracer != 0
    filterCount = Int(clamping: filters ?? (mode == 0 ? 0 : 1))
  }

  /// Returns the status of every thread, because a tracer can be attached to any of them.
  ///
  /// Threads that end meanwhile are omitted. A thread that still exists but has no status is an error.
  static func all(_ files: HostFiles) throws(MeasurementError) -> [ThreadStatus] {
    var statuses: [ThreadStatus] = []
    var ended: [String] = []
    for thread in try files.names(in: folder, as: .threads) {
      if let text = try text(of: thread, files) {
        statuses.append(try ThreadStatus(parsing: text))
      } else {
        ended.append(thread)
      }
    }
    guard !statuses.isEmpty else { throw .malformed(.threads) }
    if !ended.isEmpty {
      guard try Set(ended).isDisjoint(with: files.names(in: folder, as: .threads)) else { throw .malformed(.threads) }
    }
    return statuses
  }

  private static let folder = "/proc/self/task"

  /// Returns the text of a thread's status; nil if the thread has ended.
  private static func text(of thread: String, _ files: HostFiles) throws(MeasurementError) -> [UInt8]? {
    do throws(MeasurementError) {
      return try files.contentsIfPresent(of: "\(folder)/\(thread)/status", as: .threads)
    } catch .unreadable(.threads, code: ESRCH) {
      return nil
    }
  }
}

extension ArraySlice<UInt8> {
  /// Returns the number that the slice consists of.
  fileprivate func count(_ source: MeasuredSource) throws(MeasurementError) -> UInt64 {
    guard let number = decimal else { throw .malformed(source) }
    return number
  }
}

/// The TCP ports with a listener, as far as this process can see them.
package enum ListeningSockets {
  /// Returns whether any address listens on `port`. A listener for both address families appears in one of the tables.
  package static func contain(port: UInt16, _ files: HostFiles) throws(MeasurementError) -> Bool {
    let first = try isListening(port, AF_INET, files) { () throws(MeasurementError) in
      try files.contents(of: "/proc/net/tcp", as: .sockets)
    }
    if first { return true }
    // A kernel without IPv6 has no such table.
    return try isListening(port, AF_INET6, files) { () throws(MeasurementError) in
      try files.contentsIfPresent(of: "/proc/net/tcp6", as: .sockets) ?? []
    }
  }

  /// Asks the kernel, or reads its table if the kernel does not answer or a test supplies a table.
  private static func isListening(
    _ port: UInt16, _ family: Int32, _ files: HostFiles, table: () throws(MeasurementError) -> [UInt8]
  ) throws(MeasurementError) -> Bool {
    if files.isLive {
      let answer = holdfast_is_listening(family, port)
      if answer >= 0 { return answer == 1 }
    }
    return try table().lines.contains { isListener($0, on: port) }
  }

  /// Returns whether a line of the table is a listener on `port`.
  ///
  /// Source: proc_pid_net(5): `sl local_address:port remote_address:port state …`, hexadecimal; state 0A listens.
  package static func isListener(_ line: ArraySlice<UInt8>, on port: UInt16) -> Bool {
    let fields = line.split(separator: 0x20, maxSplits: 4)
    guard fields.count > 3, fields[3].equals("0A") else { return false }
    return fields[1].suffix(4).hexadecimal == UInt64(port)
  }
}
