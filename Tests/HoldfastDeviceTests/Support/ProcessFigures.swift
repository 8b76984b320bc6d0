import Foundation
import HoldfastLinux
import HoldfastOpenSSL

/// The resources of this process, as the kernel sees them.
struct ProcessFigures {
  /// Of memory.
  let residentByteCount: Int
  let threadCount: Int
  let descriptorCount: Int

  init() throws {
    let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
    residentByteCount = (Int(pages[1]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
    threadCount = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
    // The folder itself is open while it is read.
    descriptorCount = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count - 1
  }

  /// Waits until no more threads and descriptors are in use than `before`: a thread that has left the server's count has
  /// some instructions to go. Says whether it came to that within a minute.
  static func hasReturned(to before: ProcessFigures) throws -> Bool {
    let clock = SystemClock()
    let latest = clock.monotonicMilliseconds() + UInt64(TestPeer.patienceMilliseconds)
    while clock.monotonicMilliseconds() < latest {
      let now = try ProcessFigures()
      if now.threadCount <= before.threadCount && now.descriptorCount <= before.descriptorCount { return true }
      sched_yield()
    }
    return false
  }
}
