import CHost
import Glibc

/// Measures that keep this process's memory from other processes and from the disk.
///
/// If another process of the same user opened `/proc/PID/mem` between the start of the program and this call, it keeps the file
/// open. Yama's `ptrace_scope` of 1 or more closes that gap.
package enum ProcessHardening {
  /// Applies all measures. Call it before there are secrets in memory.
  ///
  /// - Returns: Whether the kernel made the process undumpable and set its core size limit to 0. It has no reason to refuse.
  package static func apply() -> Bool {
    let isUndumpable = holdfast_make_undumpable() == 0
    let isWithoutCore = dropCoreLimit()
    endByCrashes()
    lockMemory()
    return isUndumpable && isWithoutCore
  }

  /// Whether other processes can still read this one after ``apply()``, although the kernel reported success.
  ///
  /// The kernel's answer is then forged, for example by a seccomp filter. A process that measures itself records this finding.
  package static var isStillReadable: Bool { holdfast_is_still_dumpable() == 1 }

  /// Sets the size limit of a core file to 0, independent of whether the process is dumpable.
  private static func dropCoreLimit() -> Bool {
    var limit = rlimit(rlim_cur: 0, rlim_max: 0)
    return unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0
  }

  /// Restores the default action of crash signals, so that a crash ends the process at once.
  ///
  /// With `SWIFT_BACKTRACE` in its environment, Swift's runtime starts a program that the variable may name, gives it access to
  /// the whole memory, and waits for it.
  private static func endByCrashes() {
    for number in [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] { signal(number, SIG_DFL) }
  }

  /// Locks every page, present or future, into memory once it has been touched.
  ///
  /// It does so only if no limit applies, because of a privilege or because none is set. Under a limit, later allocations would
  /// count against it and fail when it is reached: a device with many peers would reject them. ``LockedMemory`` can still be locked.
  private static func lockMemory() {
    let resource = __rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue)
    var limit = rlimit()
    guard unsafe getrlimit(resource, &limit) == 0 else { return }
    let former = limit
    // With a limit of 0, only a privileged process can lock memory.
    limit.rlim_cur = limit.rlim_max == rlim_t.max ? rlim_t.max : 0
    guard unsafe setrlimit(resource, &limit) == 0 else { return }
    guard mlockall(MCL_CURRENT | MCL_FUTURE | Int32(MCL_ONFAULT)) != 0 else { return }
    limit = former
    unsafe setrlimit(resource, &limit)
  }
}

/// The swapping of this host, by which secrets in memory can reach a disk.
package enum Swap {
  /// Whether this process's memory may be swapped out, on this system, now.
  package static var isPossible: Bool {
    isOn(swaps: read("/proc/swaps")) && !isLocked(status: read("/proc/self/status"))
  }

  /// Returns whether the kernel has a swap area; true if the file is empty or unreadable.
  ///
  /// Source: proc_swaps(5): a line of titles, then one for each area.
  package static func isOn(swaps: String) -> Bool {
    let lines = swaps.split(separator: "\n")
    return lines.isEmpty || lines.count > 1
  }

  /// Returns whether memory is locked.
  ///
  /// Source: proc_pid_status(5): `VmLck:`, blanks, kibibytes, ` kB`.
  package static func isLocked(status: String) -> Bool {
    guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmLck:") }) else { return false }
    return line.dropFirst(6).split(whereSeparator: { $0 == " " || $0 == "\t" }).first.flatMap { UInt64($0) } ?? 0 > 0
  }

  /// Returns the first 64 KiB of a file; an empty string if it cannot be read.
  private static func read(_ path: String) -> String {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    let count = unsafe bytes.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
    return String(decoding: bytes[..<max(count, 0)], as: UTF8.self)
  }
}
