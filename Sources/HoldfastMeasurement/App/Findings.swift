import CHost
import HoldfastCore

/// What is wrong with a process; nothing, when it is clean.
///
/// Its bytes are the deterministic CBOR array of `[name (text), details (bytes), count]`, sorted by their bytes, none
/// twice; no bytes at all when there is nothing.
struct Findings {
  /// What was found, without its details.
  private(set) var kinds: Set<Finding> = []
  private var entries: [[UInt8]] = []

  var isEmpty: Bool { entries.isEmpty }

  mutating func note(_ finding: Finding, details: [UInt8] = [], count: Int = 1) {
    var entry: [UInt8] = []
    entry.appendCBOR(array: 3)
    entry.appendCBOR(text: finding.name)
    entry.appendCBOR(bytes: details.span)
    entry.appendCBOR(unsigned: UInt64(count))
    kinds.insert(finding)
    if !entries.contains(entry) { entries.append(entry) }
  }

  var encoded: [UInt8] {
    guard !isEmpty else { return [] }
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: entries.count)
    for entry in entries.sorted(by: { $0.lexicographicallyPrecedes($1) }) { bytes += entry }
    return bytes
  }
}

/// What can be wrong with a process.
public enum Finding: Sendable, Hashable, CaseIterable {
  // In `app.injected`.
  case anonymousCode, writableCode, preloadVariable, auditVariable, preloadFile, unknownToLoader, unknownToKernel
  case replacedFile, startedByLoader, patchedKernelCode
  // In `app.debug`.
  case tracer, agentThread, agentMapping, agentListener, seccompFilter, dumpable

  /// The name that goes into the digest.
  var name: StaticString {
    switch self {
    case .anonymousCode: "anonymous code"
    case .writableCode: "writable code"
    case .preloadVariable: "LD_PRELOAD"
    case .auditVariable: "LD_AUDIT"
    case .preloadFile: "ld.so.preload"
    case .unknownToLoader: "unknown to the loader"
    case .unknownToKernel: "unknown to the kernel"
    case .replacedFile: "replaced file"
    case .startedByLoader: "started by the loader"
    case .patchedKernelCode: "patched kernel code"
    case .tracer: "tracer"
    case .agentThread: "agent thread"
    case .agentMapping: "agent mapping"
    case .agentListener: "agent listener"
    case .seccompFilter: "seccomp filter"
    case .dumpable: "dumpable"
    }
  }
}

extension Findings {
  /// Code that did not come with the app: executable memory without a file, memory of files both writable and executable,
  /// preloaded or auditing libraries, code that only the kernel or only the loader knows of, code of files that are gone or
  /// replaced, a program that the loader was told to start, and pages of the kernel's that were written to.
  init(injectionIn code: LiveCode, files: HostFiles) throws(MeasurementError) {
    let loaded = files.loader.executableRanges
    noteAnonymousCode(code.map)
    try notePreloads(files)
    noteLoaderDisagreement(code, loaded)
    noteReplacedFiles(code)
    noteStartByLoader(code, loaded)
    try notePatchedKernelCode(code.map, files)
  }

  /// Counts executable mappings without a file by what the kernel calls them, `[stack]` or nothing for instance.
  private mutating func noteAnonymousCode(_ map: MemoryMap) {
    var counts: [[UInt8]: Int] = [:]
    var writableFileCount = 0
    for mapping in map.mappings where mapping.isExecutable && !mapping.isKernelCode {
      if !mapping.isFileBacked {
        counts[mapping.name, default: 0] += 1
      } else if mapping.isWritable {
        writableFileCount += 1
      }
    }
    for (name, count) in counts { note(.anonymousCode, details: name, count: count) }
    if writableFileCount > 0 { note(.writableCode, count: writableFileCount) }
  }

  /// Looks at the environment that the process was started with: a preloaded library can change what `getenv` says.
  private mutating func notePreloads(_ files: HostFiles) throws(MeasurementError) {
    let environment = try files.contents(of: "/proc/self/environ", as: .environment)
    for entry in environment.split(separator: 0) {
      var value = entry
      let name = value.take(until: 0x3d)
      if value.isEmpty { continue }
      if name.equals("LD_PRELOAD") { note(.preloadVariable, details: Array(value)) }
      if name.equals("LD_AUDIT") { note(.auditVariable, details: Array(value)) }
    }
    let preloads = try files.contentsIfPresent(of: "/etc/ld.so.preload", as: .preloadFile) ?? []
    if !preloads[...].trimmed.isEmpty { note(.preloadFile, details: preloads) }
  }

  /// Compares by address, because names differ by links: each side's code must lie within the other's.
  private mutating func noteLoaderDisagreement(_ code: LiveCode, _ loaded: [Range<UInt64>]) {
    let mapped = code.segments.map(\.addresses)
    let kernelCode = code.map.mappings.filter(\.isKernelCode).map(\.addresses)
    let unknownToLoader = mapped.filter { segment in !loaded.contains { $0.contains(segment) } }
    let unknownToKernel = loaded.filter { range in
      !mapped.contains { $0.contains(range) } && !kernelCode.contains { $0.overlaps(range) }
    }
    if !unknownToLoader.isEmpty { note(.unknownToLoader, count: unknownToLoader.count) }
    if !unknownToKernel.isEmpty { note(.unknownToKernel, count: unknownToKernel.count) }
  }

  /// What runs is what is hashed; that it is no longer what is installed is said here. Names go in, so that one library
  /// replaced is not another.
  private mutating func noteReplacedFiles(_ code: LiveCode) {
    for segment in code.segments where code.files.isReplaced(segment) { note(.replacedFile, details: segment.path) }
  }

  /// The loader's first object is the program. It is not the executable where the loader itself was started, with the
  /// program, and perhaps libraries to preload, as its arguments.
  ///
  /// Source: ld.so(8).
  private mutating func noteStartByLoader(_ code: LiveCode, _ loaded: [Range<UInt64>]) {
    let program = code.segments.first { segment in loaded.first.map(segment.addresses.contains) ?? false }
    if program?.path != code.executable { note(.startedByLoader) }
  }

  /// The code that the kernel gives to every process differs from kernel to kernel, and is not hashed: that its pages are
  /// still the kernel's is enough. A debugger can write to a process's own copy of `[vdso]`; nobody can to `[vsyscall]`.
  private mutating func notePatchedKernelCode(_ map: MemoryMap, _ files: HostFiles) throws(MeasurementError) {
    let pages = try PageMap(files)
    var chunk = [UInt8](repeating: 0, count: 64)
    for mapping in map.mappings where mapping.isKernelCode && mapping.name[...].equals("[vdso]") {
      guard try !pages.isFileBacked(mapping.addresses, chunk: &chunk) else { continue }
      note(.patchedKernelCode)
    }
  }
}

extension Range<UInt64> {
  fileprivate func contains(_ other: Range<UInt64>) -> Bool {
    lowerBound <= other.lowerBound && other.upperBound <= upperBound
  }
}

extension Findings {
  /// Where Frida's server listens unless told otherwise.
  private static let agentPort: UInt16 = 27042

  /// Looks at threads, mapped files, listening sockets, and at whether the process is as closed as it asked to be.
  init(watchersIn map: MemoryMap, files: HostFiles) throws(MeasurementError) {
    for thread in try ThreadStatus.all(files) {
      if thread.isTraced { note(.tracer) }
      // A filter can answer for the kernel. Those of the service manager are there at the baseline as well, as many of them.
      if thread.filterCount > 0 { note(.seccompFilter, count: thread.filterCount) }
      if Self.isAgentThread(thread.name[...]) { note(.agentThread, details: thread.name) }
    }
    for mapping in map.mappings where Self.isAgentFile(mapping.name[...]) { note(.agentMapping) }
    if files.isLive && holdfast_is_still_dumpable() == 1 { note(.dumpable) }
    if try ListeningSockets.contain(port: Self.agentPort, files) { note(.agentListener) }
  }

  /// Names that Frida gives its threads. `gmain` and `gdbus` are left out: every GLib program has them.
  private static func isAgentThread(_ name: ArraySlice<UInt8>) -> Bool {
    name.equals("gum-js-loop") || name.equals("linjector") || name.contains("frida")
  }

  private static func isAgentFile(_ name: ArraySlice<UInt8>) -> Bool {
    name.contains("frida-agent") || name.contains("frida-gadget") || name.contains("libgadget")
      || name.contains("linjector")
  }
}
