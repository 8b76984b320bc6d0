import Glibc
import HoldfastCore

/// The measurement of all code that runs from files, as it is in memory now.
///
/// SHA-256 over each executable segment's file offset (u64, big-endian), length (u64, big-endian) and bytes: those of the
/// executable first, then by path, offset and length. No name and no address goes in, so neither a move of the app nor
/// address space randomisation shows.
struct ExecutableText {
  static func measure<Hash: StreamingDigest>(
    _ map: MemoryMap, _ files: HostFiles, into hash: inout Hash, chunk: inout [UInt8]
  ) throws(MeasurementError) {
    let executable = try files.destination(of: "/proc/self/exe", as: .executable)
    let name = Array(MemoryMapping.withoutDeleted(executable[...]))
    let memory = try files.open("/proc/self/mem", as: .memory)
    for segment in map.executableSegments.sorted(by: { $0.precedes($1, executable: name) }) {
      hash.append(bigEndian: segment.fileOffset)
      hash.append(bigEndian: segment.byteCount)
      do throws(SystemFault) {
        try append(segment.addresses, of: memory, to: &hash, chunk: &chunk)
      } catch {
        throw .unreadable(.memory, code: error.code)
      }
    }
  }

  private static func append<Hash: StreamingDigest>(
    _ addresses: Range<UInt64>, of memory: borrowing OpenFile, to hash: inout Hash, chunk: inout [UInt8]
  ) throws(SystemFault) {
    var address = addresses.lowerBound
    while address < addresses.upperBound {
      let wanted = min(UInt64(chunk.count), addresses.upperBound - address)
      var span = chunk.mutableSpan
      var part = span._mutatingExtracting(first: Int(wanted))
      let count = try memory.read(into: &part, at: address)
      guard count > 0 else { throw SystemFault(code: EIO) }
      hash.append(chunk.span.extracting(first: count))
      address += UInt64(count)
    }
  }
}
