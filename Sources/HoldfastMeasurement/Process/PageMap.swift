import Glibc

/// Which pages of this process are still those of their files.
///
/// Source: Linux, Documentation/admin-guide/mm/pagemap.rst.
struct PageMap: ~Copyable {
  private let file: OpenFile
  private let pageByteCount = UInt64(sysconf(Int32(_SC_PAGESIZE)))

  init(_ files: HostFiles) throws(MeasurementError) {
    file = try files.open("/proc/self/pagemap", as: .pageMap)
  }

  /// Whether no page of a mapping, of a file or of the kernel's own code, is a private one, such as copy-on-write leaves.
  func isFileBacked(_ addresses: Range<UInt64>, chunk: inout [UInt8]) throws(MeasurementError) -> Bool {
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
    do throws(SystemFault) {
      var span = chunk.mutableSpan
      var part = span._mutatingExtracting(first: count)
      guard try file.read(into: &part, at: offset) == count else { throw SystemFault(code: EIO) }
    } catch {
      throw .unreadable(.pageMap, code: error.code)
    }
  }

  /// An entry is a u64 in the machine's byte order.
  private static func entry(at position: Int, of bytes: [UInt8]) -> UInt64 {
    unsafe bytes.withUnsafeBytes { unsafe $0.loadUnaligned(fromByteOffset: position, as: UInt64.self) }
  }

  /// Bit 63: present; 62: swapped out; 61: a page of a file, or of shared memory.
  ///
  /// What is neither present nor swapped comes from the file when it is touched.
  static func isFileBacked(entry: UInt64) -> Bool {
    let isPresent = entry >> 63 & 1 == 1
    let isSwapped = entry >> 62 & 1 == 1
    let isOfFile = entry >> 61 & 1 == 1
    return !isSwapped && (!isPresent || isOfFile)
  }
}
