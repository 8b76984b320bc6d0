extension Findings {
  /// Code that did not come with the app: executable memory without a file, memory of files both writable and executable,
  /// preloaded or auditing libraries, and code that only the kernel or only the loader knows of.
  init(injectionIn map: MemoryMap, files: HostFiles) throws(MeasurementError) {
    noteAnonymousCode(map)
    try notePreloads(files)
    noteLoaderDisagreement(map, files.loader.executableRanges)
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
    for (name, count) in counts { note("anonymous code", details: name, count: count) }
    if writableFileCount > 0 { note("writable code", count: writableFileCount) }
  }

  /// Looks at the environment that the process was started with: a preloaded library can change what `getenv` says.
  private mutating func notePreloads(_ files: HostFiles) throws(MeasurementError) {
    let environment = try files.contents(of: "/proc/self/environ", as: .environment)
    for entry in environment.split(separator: 0) {
      var value = entry
      let name = value.take(until: 0x3d)
      if value.isEmpty { continue }
      if name.equals("LD_PRELOAD") { note("LD_PRELOAD", details: Array(value)) }
      if name.equals("LD_AUDIT") { note("LD_AUDIT", details: Array(value)) }
    }
    let preloads = try files.contentsIfPresent(of: "/etc/ld.so.preload", as: .preloadFile) ?? []
    if !preloads[...].trimmed.isEmpty { note("ld.so.preload", details: preloads) }
  }

  /// Compares by address, because names differ by links: each side's code must lie within the other's.
  private mutating func noteLoaderDisagreement(_ map: MemoryMap, _ loaded: [Range<UInt64>]) {
    let mapped = map.executableSegments.map(\.addresses)
    let kernelCode = map.mappings.filter(\.isKernelCode).map(\.addresses)
    let unknownToLoader = mapped.filter { segment in !loaded.contains { $0.contains(segment) } }
    let unknownToKernel = loaded.filter { range in
      !mapped.contains { $0.contains(range) } && !kernelCode.contains { $0.overlaps(range) }
    }
    if !unknownToLoader.isEmpty { note("unknown to the loader", count: unknownToLoader.count) }
    if !unknownToKernel.isEmpty { note("unknown to the kernel", count: unknownToKernel.count) }
  }
}

extension Range<UInt64> {
  fileprivate func contains(_ other: Range<UInt64>) -> Bool {
    lowerBound <= other.lowerBound && other.upperBound <= upperBound
  }
}
