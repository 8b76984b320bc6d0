import CHost
import Glibc

/// What keeps other processes, and the disk, from the memory of this one.
///
/// Another process of the same user that opened `/proc/PID/mem` between the start of the program and this call keeps it
/// open. Yama's `ptrace_scope` of 1 or more closes that gap.
package enum ProcessHardening {
  /// Applies all of it. Call it before there are secrets in memory.
  ///
  /// - Returns: false when the kernel did not take one of the first two, which it has no reason to.
  package static func apply() -> Bool {
    let isUndumpable = holdfast_make_undumpable() == 0
    let isWithoutCore = dropCoreLimit()
    endByCrashes()
    lockMemory()
    return isUndumpable && isWithoutCore
  }

  /// Whether the process can be read by others after ``apply()``, although the kernel said that it cannot: somebody answers system
  /// calls in the kernel's place. A process that measures itself has this as a finding.
  package static var isStillReadable: Bool { holdfast_is_still_dumpable() == 1 }

  /// No core file, whatever the process is.
  private static func dropCoreLimit() -> Bool {
    var limit = rlimit(rlim_cur: 0, rlim_max: 0)
    return unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0
  }

  /// A crash ends the process, and nothing looks at it first. With `SWIFT_BACKTRACE` in its environment, Swift's runtime starts
  /// a program that the variable may name, lends it the whole memory, and waits for it.
  private static func endByCrashes() {
    for number in [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] { signal(number, SIG_DFL) }
  }

  /// Keeps every page, those that come later too, from being swapped out once it was touched.
  ///
  /// Only where no limit applies, by privilege or because there is none. Under a limit each later allocation would count
  /// against it, and fail when it is reached: a device with many peers would turn them away.
  private static func lockMemory() {
    let resource = __rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue)
    var limit = rlimit()
    guard unsafe getrlimit(resource, &limit) == 0 else { return }
    // With a limit of 0 only a privileged process may lock anything.
    limit.rlim_cur = limit.rlim_max == rlim_t.max ? rlim_t.max : 0
    guard unsafe setrlimit(resource, &limit) == 0 else { return }
    _ = mlockall(MCL_CURRENT | MCL_FUTURE | Int32(MCL_ONFAULT))
  }
}

/// Whether secrets in memory can reach a disk.
package enum Swap {
  /// Whether this process's memory may be swapped out, on this system, now.
  package static var isPossible: Bool {
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
