import CHost
import Glibc
import HoldfastLinux
import Synchronization

/// The kernel's map of this process's memory.
package struct MemoryMap: Sendable {
  let mappings: [MemoryMapping]
  /// Every mapping of a file, and every executable one. Memory without a file that cannot be executed is left out: no code runs from
  /// it, and every allocation changes it.
  let codeMappings: [MemoryMapping]

  /// The text that was parsed last, with its map. Most measurements of a process read the same text.
  private static let last = Mutex<(text: [UInt8], map: MemoryMap)?>(nil)

  /// Reads the map of this process.
  package init(_ files: HostFiles) throws(MeasurementError) {
    let text = try files.contents(of: "/proc/self/maps", as: .memoryMap)
    if let last = Self.last.withLock({ $0 }), last.text == text {
      self = last.map
      return
    }
    let map = try MemoryMap(parsing: text)
    Self.last.withLock { $0 = (text, map) }
    self = map
  }

  /// Parses the text of a map, which is never empty.
  package init(parsing text: [UInt8]) throws(MeasurementError) {
    var mappings: [MemoryMapping] = []
    for line in text.lines {
      guard let mapping = MemoryMapping(parsing: line) else { throw .malformed(.memoryMap) }
      mappings.append(mapping)
    }
    guard !mappings.isEmpty else { throw .malformed(.memoryMap) }
    self.mappings = mappings
    codeMappings = mappings.filter { $0.isFileBacked || $0.isExecutable }
  }

  /// The executable mappings of files in the order of their addresses, with adjacent ones joined.
  ///
  /// A change of protection splits a mapping, and undoing it need not join the parts again; the code is the same.
  package var executableSegments: [ExecutableSegment] {
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

/// A segment of a file's code in memory.
package struct ExecutableSegment: Equatable {
  package var addresses: Range<UInt64>
  package var fileOffset: UInt64
  package var identity: FileIdentity
  package var path: [UInt8]
  package var isDeleted: Bool

  package init(_ mapping: MemoryMapping) {
    addresses = mapping.addresses
    fileOffset = mapping.fileOffset
    identity = mapping.identity
    path = mapping.name
    isDeleted = mapping.isDeleted
  }

  package var byteCount: UInt64 { addresses.upperBound - addresses.lowerBound }

  fileprivate func isContinued(by mapping: MemoryMapping) -> Bool {
    mapping.addresses.lowerBound == addresses.upperBound && mapping.fileOffset == fileOffset + byteCount
      && mapping.identity == identity && mapping.name == path && mapping.isDeleted == isDeleted
  }

  /// Returns whether this segment is hashed before `other`: the executable first, independent of its address and name; then by
  /// path, by offset and by length.
  package func precedes(_ other: ExecutableSegment, executable: [UInt8]) -> Bool {
    let isFirst = path == executable
    guard isFirst == (other.path == executable) else { return isFirst }
    if path != other.path { return path.lexicographicallyPrecedes(other.path) }
    if fileOffset != other.fileOffset { return fileOffset < other.fileOffset }
    return byteCount < other.byteCount
  }
}

/// One line of the kernel's memory map.
///
/// Source: proc_pid_maps(5).
package struct MemoryMapping: Equatable, Sendable {
  package var addresses: Range<UInt64>
  /// The permissions and the sharing of the mapping, four characters such as `r-xp`.
  package var permissions: [UInt8]
  package var isWritable: Bool
  package var isExecutable: Bool
  package var fileOffset: UInt64
  package var identity: FileIdentity
  /// The file's path, without ` (deleted)`; or the kernel's name for a mapping without a file; or empty.
  package var name: [UInt8]
  /// Whether the kernel reports that the file was deleted.
  package var isDeleted: Bool

  /// Whether a file backs the mapping, even a deleted one.
  package var isFileBacked: Bool { identity.inode != 0 || name.first == 0x2f }

  /// Whether it is code that the kernel gives to every process. No file and no anonymous mapping can have these names.
  package var isKernelCode: Bool { !isFileBacked && (name[...].equals("[vdso]") || name[...].equals("[vsyscall]")) }

  /// Parses `start-end perms offset device inode name`; returns nil if the line has another form.
  package init?(parsing line: ArraySlice<UInt8>) {
    var rest = line
    guard let start = rest.take(until: 0x2d).hexadecimal, let end = rest.take(until: 0x20).hexadecimal, start < end
    else { return nil }
    let permissions = Array(rest.take(until: 0x20))
    guard permissions.count == 4, let offset = rest.take(until: 0x20).hexadecimal else { return nil }
    guard let major = rest.take(until: 0x3a).hexadecimal, let minor = rest.take(until: 0x20).hexadecimal,
      let inode = rest.take(until: 0x20).decimal
    else { return nil }
    addresses = start..<end
    self.permissions = permissions
    isWritable = permissions[1] == 0x77
    isExecutable = permissions[2] == 0x78
    fileOffset = offset
    identity = FileIdentity(deviceMajor: major, deviceMinor: minor, inode: inode)
    let whole = rest.drop { $0 == 0x20 }
    name = Array(Self.withoutDeleted(whole))
    isDeleted = name.count != whole.count
  }

  /// Removes the suffix that the kernel appends to the name of a deleted file.
  static func withoutDeleted(_ name: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    name.suffix(10).equals(" (deleted)") ? name.dropLast(10) : name
  }
}

/// The kernel's page table information, which shows whether pages of this process are still those of their files.
///
/// Source: Linux, Documentation/admin-guide/mm/pagemap.rst.
package struct PageMap: ~Copyable {
  private let file: Descriptor
  private let pageByteCount = UInt64(sysconf(Int32(_SC_PAGESIZE)))

  package init(_ files: HostFiles) throws(MeasurementError) {
    file = try files.open("/proc/self/pagemap", as: .pageMap)
  }

  /// Returns whether a mapping, of a file or of the kernel's code, has no private page, such as copy-on-write creates.
  package func isFileBacked(_ addresses: Range<UInt64>, chunk: inout [UInt8]) throws(MeasurementError) -> Bool {
    let end = addresses.upperBound / pageByteCount * 8
    var offset = addresses.lowerBound / pageByteCount * 8
    while offset < end {
      let wanted = min(chunk.count & ~7, Int(end - offset))
      try read(into: &chunk, count: wanted, at: offset)
      for position in stride(from: 0, to: wanted, by: 8)
      where !Self.isFileBacked(entry: Self.entry(at: position, of: chunk)) { return false }
      offset += UInt64(wanted)
    }
    return true
  }

  private func read(into chunk: inout [UInt8], count: Int, at offset: UInt64) throws(MeasurementError) {
    do throws(SystemError) {
      var span = chunk.mutableSpan
      var part = span._mutatingExtracting(first: count)
      guard try file.read(into: &part, at: offset) == count else { throw SystemError(EIO) }
    } catch {
      throw .unreadable(.pageMap, code: error.number)
    }
  }

  /// Returns the entry, a u64 in the machine's byte order.
  private static func entry(at position: Int, of bytes: [UInt8]) -> UInt64 {
    unsafe bytes.withUnsafeBytes { unsafe $0.loadUnaligned(fromByteOffset: position, as: UInt64.self) }
  }

  /// Returns whether the page is a file's. Bit 63: present; 62: swapped out; 61: a page of a file, or of shared memory.
  ///
  /// A page that is neither present nor swapped out is read from the file when it is touched.
  package static func isFileBacked(entry: UInt64) -> Bool {
    let isPresent = entry >> 63 & 1 == 1
    let isSwapped = entry >> 62 & 1 == 1
    let isOfFile = entry >> 61 & 1 == 1
    return !isSwapped && (!isPresent || isOfFile)
  }
}

/// All code that is mapped into this process, and its files.
package struct LiveCode {
  /// The kernel's map.
  let map: MemoryMap
  /// The path of the executable file according to the kernel.
  let executable: [UInt8]
  /// The executable segments of files: those of the executable first, then by path, offset and length.
  let segments: [ExecutableSegment]
  /// The files at their paths.
  let files: CodeFiles

  /// Looks at the code of this process.
  ///
  /// - Parameter withState: whether the state by which files are known to be unchanged is needed.
  init(_ host: HostFiles, withState: Bool = false) throws(MeasurementError) {
    let map = try MemoryMap(host)
    let target = try host.destination(of: "/proc/self/exe", as: .executable)
    let executable = Array(MemoryMapping.withoutDeleted(target[...]))
    self.map = map
    self.executable = executable
    segments = map.executableSegments.sorted { $0.precedes($1, executable: executable) }
    files = try CodeFiles(of: segments, host, withState: withState)
  }
}

extension HostFiles.LoaderView {
  /// The executable address ranges of every object that the loader knows, extended to whole pages.
  var executableRanges: [Range<UInt64>] {
    switch self {
    case .fixed(let ranges): ranges
    case .live: Self.liveRanges()
    }
  }

  /// Returns the ranges from the loader of this process. Source: dl_iterate_phdr(3).
  private static func liveRanges() -> [Range<UInt64>] {
    var capacity = 64
    while true {
      var ranges = [holdfast_range](repeating: holdfast_range(), count: capacity)
      let count = unsafe ranges.withUnsafeMutableBufferPointer {
        unsafe holdfast_executable_ranges($0.baseAddress, $0.count)
      }
      if count <= capacity { return ranges[..<count].map { $0.start..<$0.end } }
      capacity = count * 2
    }
  }
}
