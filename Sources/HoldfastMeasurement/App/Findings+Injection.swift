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
