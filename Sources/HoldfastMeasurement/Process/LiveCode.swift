/// All code that is mapped into this process, and the files that it comes from.
struct LiveCode {
  /// The kernel's map.
  let map: MemoryMap
  /// The path of the executable file, as the kernel tells it.
  let executable: [UInt8]
  /// The executable segments of files: those of the executable first, then by path, offset and length.
  let segments: [ExecutableSegment]
  /// What lies at their paths.
  let files: CodeFiles

  init(_ host: HostFiles) throws(MeasurementError) {
    let map = try MemoryMap(host)
    let target = try host.destination(of: "/proc/self/exe", as: .executable)
    let executable = Array(MemoryMapping.withoutDeleted(target[...]))
    self.map = map
    self.executable = executable
    segments = map.executableSegments.sorted { $0.precedes($1, executable: executable) }
    files = try CodeFiles(of: segments, host)
  }
}
