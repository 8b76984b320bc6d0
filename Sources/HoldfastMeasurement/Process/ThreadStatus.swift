import Glibc

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
