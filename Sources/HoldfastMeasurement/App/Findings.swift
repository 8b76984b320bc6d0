import CHost
import HoldfastCore

/// The findings about a process; none if it is clean.
///
/// Their encoding is the deterministic CBOR array of `[name (text), details (bytes), count]`, sorted by their bytes, without
/// repetitions; it is empty if there are no findings.
package struct Findings {
  /// The kinds of the findings, without their details.
  package private(set) var kinds: Set<Finding> = []
  private var entries: [[UInt8]] = []

  package init(kinds: Set<Finding> = []) {
    self.kinds = kinds
  }

  package var isEmpty: Bool { entries.isEmpty }

  package mutating func note(_ finding: Finding, details: [UInt8] = [], count: Int = 1) {
    var entry: [UInt8] = []
    entry.appendCBOR(array: 3)
    entry.appendCBOR(text: finding.name)
    entry.appendCBOR(bytes: details.span)
    entry.appendCBOR(unsigned: UInt64(count))
    kinds.insert(finding)
    if !entries.contains(entry) { entries.append(entry) }
  }

  package var encoded: [UInt8] {
    guard !isEmpty else { return [] }
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: entries.count)
    for entry in entries.sorted(by: { $0.lexicographicallyPrecedes($1) }) { bytes += entry }
    return bytes
  }
}

/// A sign that a process has been tampered with or is being observed.
public enum Finding: Sendable, Hashable, CaseIterable {
  /// A finding in the component `app.injected`: code or libraries that did not come with the app.
  case anonymousCode, writableCode, preloadVariable, auditVariable, preloadFile, unknownToLoader, unknownToKernel
  /// A finding in `app.injected`: code that was replaced, started by the dynamic loader, or patched.
  case replacedFile, startedByLoader, patchedKernelCode
  /// A finding in the component `app.debug`: a debugger, an instrumentation agent, a system call filter, or readable memory.
  case tracer, agentThread, agentMapping, agentListener, seccompFilter, dumpable

  /// The name that goes into the digest.
  package var name: StaticString {
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
  /// Finds code that did not come with the app: executable memory without a file, file mappings both writable and executable,
  /// preloaded or auditing libraries, code that only the kernel or only the loader knows, code of removed or replaced files, a
  /// program started through the loader, and modified pages of the kernel's code.
  package init(injectionIn code: LiveCode, files: HostFiles) throws(MeasurementError) {
    let loaded = files.loader.executableRanges
    noteAnonymousCode(code.map)
    try notePreloads(files)
    noteLoaderDisagreement(code, loaded)
    noteReplacedFiles(code)
    noteStartByLoader(code, loaded)
    try notePatchedKernelCode(code.map, files)
  }

  /// Counts executable mappings without a file by the kernel's name for them, `[stack]` or an empty one for instance.
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

  /// Examines the environment with which the process was started, because a preloaded library can change the result of `getenv`.
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

  /// Compares by address, because names differ through links. The code of each side must be contained in the other's.
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

  /// Records files that have changed since they were mapped. app.text hashes the running code; this records that the file on disk
  /// is another one. The path is included so that findings for different libraries differ.
  private mutating func noteReplacedFiles(_ code: LiveCode) {
    for segment in code.segments where code.files.isReplaced(segment) { note(.replacedFile, details: segment.path) }
  }

  /// Records a program that was started through the dynamic loader. The loader's first object is the program, and it is not the
  /// executable if the loader itself was started with the program, and perhaps libraries to preload, as its arguments.
  ///
  /// Source: ld.so(8).
  private mutating func noteStartByLoader(_ code: LiveCode, _ loaded: [Range<UInt64>]) {
    let program = code.segments.first { segment in loaded.first.map(segment.addresses.contains) ?? false }
    if program?.path != code.executable { note(.startedByLoader) }
  }

  /// Records modified pages of the code that the kernel gives to every process. This code differs between kernels and is not
  /// hashed, so only its pages are checked. A debugger can write to a process's own copy of `[vdso]`, but not to `[vsyscall]`.
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
  /// The default port of Frida's server.
  private static let agentPort: UInt16 = 27042

  /// Examines threads, mapped files and listening sockets, and whether the process is still not dumpable.
  package init(watchersIn map: MemoryMap, files: HostFiles) throws(MeasurementError) {
    for thread in try ThreadStatus.all(files) {
      if thread.isTraced { note(.tracer) }
      // A filter can answer in place of the kernel. Filters of the service manager are in the baseline too, in the same number.
      if thread.filterCount > 0 { note(.seccompFilter, count: thread.filterCount) }
      if Self.isAgentThread(thread.name[...]) { note(.agentThread, details: thread.name) }
    }
    for mapping in map.mappings where Self.isAgentFile(mapping.name[...]) { note(.agentMapping) }
    if files.isLive && holdfast_is_still_dumpable() == 1 { note(.dumpable) }
    if try ListeningSockets.contain(port: Self.agentPort, files) { note(.agentListener) }
  }

  /// Returns whether Frida gives its threads this name. `gmain` and `gdbus` are omitted, because every GLib program has them.
  private static func isAgentThread(_ name: ArraySlice<UInt8>) -> Bool {
    name.equals("gum-js-loop") || name.equals("linjector") || name.contains("frida")
  }

  private static func isAgentFile(_ name: ArraySlice<UInt8>) -> Bool {
    name.contains("frida-agent") || name.contains("frida-gadget") || name.contains("libgadget")
      || name.contains("linjector")
  }
}
