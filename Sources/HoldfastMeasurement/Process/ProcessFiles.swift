import CHost
import Glibc
import HoldfastLinux
import Synchronization

/// The files of this process that its user can open only as long as the process is dumpable: `mem`, `environ` and `pagemap`.
///
/// Source: proc(5), on `PR_SET_DUMPABLE`: they become root's.
public enum ProcessFiles {
  private struct Kept {
    let process: pid_t
    let descriptors: [String: Int32]
  }

  private static let kept = Mutex<Kept?>(nil)

  /// Opens them, for every later measurement of this process, until it ends. Call it before the process stops being
  /// dumpable, and before there are secrets in memory.
  ///
  /// What cannot be opened is tried again by each measurement, which then says why.
  public static func keepOpen() {
    var descriptors: [String: Int32] = [:]
    for path in ["/proc/self/mem", "/proc/self/environ", "/proc/self/pagemap"] {
      let descriptor = unsafe holdfast_open_proc(String(path.dropFirst("/proc/".utf8.count)))
      if descriptor >= 0 { descriptors[path] = descriptor }
    }
    kept.withLock { $0 = Kept(process: getpid(), descriptors: descriptors) }
  }

  /// The file at `path`, if it was kept by this process. A forked child has memory of its own.
  static func file(at path: String) throws(SystemError) -> Descriptor? {
    let kept = kept.withLock { $0 }
    guard let kept, kept.process == getpid(), let descriptor = kept.descriptors[path] else { return nil }
    return try Descriptor(sameAs: descriptor)
  }
}

/// What one thread's `status` says that matters here.
///
/// Source: proc_pid_status(5).
struct ThreadStatus: Equatable {
  /// The thread's name, at most 15 bytes, escaped by the kernel.
  let name: [UInt8]
  /// Whether somebody traces it.
  let isTraced: Bool
  /// How many seccomp filters its system calls pass; 1 where a kernel before 5.9 says only that there are any.
  let filterCount: Int

  /// Reads the status of a thread; `malformed` when a line is missing.
  init(parsing text: [UInt8]) throws(MeasurementError) {
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

  /// The status of every thread: a tracer may hold any one of them. Threads that end meanwhile are left out; one that has
  /// no status and is still there is an error.
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

  /// The text of a thread's status; nil when there is none any more.
  private static func text(of thread: String, _ files: HostFiles) throws(MeasurementError) -> [UInt8]? {
    do throws(MeasurementError) {
      return try files.contentsIfPresent(of: "\(folder)/\(thread)/status", as: .threads)
    } catch .unreadable(.threads, code: ESRCH) {
      return nil
    }
  }
}

extension ArraySlice<UInt8> {
  /// The number that stands there and nothing else.
  fileprivate func count(_ source: MeasuredSource) throws(MeasurementError) -> UInt64 {
    guard let number = decimal else { throw .malformed(source) }
    return number
  }
}

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
