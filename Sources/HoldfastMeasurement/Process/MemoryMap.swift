/// The kernel's map of this process's memory.
struct MemoryMap {
  let mappings: [MemoryMapping]

  /// Reads the map.
  init(_ files: HostFiles) throws(MeasurementError) {
    try self.init(parsing: files.contents(of: "/proc/self/maps", as: .memoryMap))
  }

  /// Reads the text of a map, which is never empty.
  init(parsing text: [UInt8]) throws(MeasurementError) {
    var mappings: [MemoryMapping] = []
    for line in text.lines {
      guard let mapping = MemoryMapping(parsing: line) else { throw .malformed(.memoryMap) }
      mappings.append(mapping)
    }
    guard !mappings.isEmpty else { throw .malformed(.memoryMap) }
    self.mappings = mappings
  }

  /// The executable mappings of files, neighbours joined, in the order of their addresses.
  ///
  /// A change of protection splits a mapping and need not join it again when it is undone: what counts is the code.
  var executableSegments: [ExecutableSegment] {
    var segments: [ExecutableSegment] = []
    for mapping in mappings where mapping.isExecutable && mapping.isFileBacked {
      if let last = segments.last, last.isContinued(by: mapping) {
        segments[segments.count - 1].addresses = last.addresses.lowerBound..<mapping.addresses.upperBound
      } else {
        segments.append(ExecutableSegment(mapping))
      }
    }
    return segments
  }
}

/// Code of a file, as it lies in memory.
struct ExecutableSegment: Equatable {
  var addresses: Range<UInt64>
  var fileOffset: UInt64
  var identity: FileIdentity
  var path: [UInt8]
  var isDeleted: Bool

  init(_ mapping: MemoryMapping) {
    addresses = mapping.addresses
    fileOffset = mapping.fileOffset
    identity = mapping.identity
    path = mapping.name
    isDeleted = mapping.isDeleted
  }

  var byteCount: UInt64 { addresses.upperBound - addresses.lowerBound }

  fileprivate func isContinued(by mapping: MemoryMapping) -> Bool {
    mapping.addresses.lowerBound == addresses.upperBound && mapping.fileOffset == fileOffset + byteCount
      && mapping.identity == identity && mapping.name == path && mapping.isDeleted == isDeleted
  }

  /// Whether this is hashed before `other`: the executable first, wherever it lies and whatever it is called; then by path,
  /// by offset and by length.
  func precedes(_ other: ExecutableSegment, executable: [UInt8]) -> Bool {
    let isFirst = path == executable
    guard isFirst == (other.path == executable) else { return isFirst }
    if path != other.path { return path.lexicographicallyPrecedes(other.path) }
    if fileOffset != other.fileOffset { return fileOffset < other.fileOffset }
    return byteCount < other.byteCount
  }
}
