import Glibc

/// What one thread's `status` says that matters here.
///
/// Source: proc_pid_status(5).
struct ThreadStatus: Equatable {
  /// The thread's name, at most 15 bytes, escaped by the kernel.
  let name: [UInt8]
  /// Whether somebody traces it.
  let isTraced: Bool

  /// Reads the status of a thread; `malformed` when a line is missing.
  init(parsing text: [UInt8]) throws(MeasurementError) {
    var name: [UInt8]?
    var tracer: UInt64?
    for line in text.lines {
      var value = line
      let label = value.take(until: 0x3a)
      if label.equals("Name") { name = Array(value.trimmed) }
      if label.equals("TracerPid") { tracer = value.trimmed.decimal }
    }
    guard let name, let tracer else { throw .malformed(.threads) }
    self.name = name
    isTraced = tracer != 0
  }

  /// The status of every thread: a tracer may hold any one of them. Threads that end meanwhile are left out.
  static func all(_ files: HostFiles) throws(MeasurementError) -> [ThreadStatus] {
    var statuses: [ThreadStatus] = []
    for thread in try files.names(in: "/proc/self/task", as: .threads) {
      do throws(MeasurementError) {
        guard let text = try files.contentsIfPresent(of: "/proc/self/task/\(thread)/status", as: .threads)
        else { continue }
        statuses.append(try ThreadStatus(parsing: text))
      } catch .unreadable(.threads, code: ESRCH) {
        continue
      }
    }
    guard !statuses.isEmpty else { throw .malformed(.threads) }
    return statuses
  }
}
