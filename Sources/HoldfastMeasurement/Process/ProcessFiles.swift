import CHost
import Glibc
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
  static func file(at path: String) throws(SystemFault) -> OpenFile? {
    let kept = kept.withLock { $0 }
    guard let kept, kept.process == getpid(), let descriptor = kept.descriptors[path] else { return nil }
    return try OpenFile(sameAs: descriptor)
  }
}
