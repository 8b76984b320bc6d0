import Glibc
import HoldfastCore

/// The measurement of all code that runs from files, as it is in memory now.
///
/// SHA-256 over each executable segment's file offset (u64, big-endian), length (u64, big-endian) and bytes: those of the
/// executable first, then by path, offset and length. No name and no address goes in, so neither a move of the app nor
/// address space randomisation shows.
///
/// Where the file has fs-verity and no page of the segment is a private one, the segment goes in as eight bytes 0xff, which
/// are no file offset, the algorithm's name, 0x00, the fs-verity digest, offset and length: the kernel checks each page of
/// such a file when it is read, and nobody can write to it.
struct ExecutableText {
  /// How many segments there were.
  private(set) var segmentCount = 0
  /// How many of them went in by their file's fs-verity digest.
  private(set) var verifiedSegmentCount = 0

  private static let verityMark = UInt64.max

  init<Hash: StreamingDigest>(
    measuring code: LiveCode, _ files: HostFiles, into hash: inout Hash, chunk: inout [UInt8]
  ) throws(MeasurementError) {
    let memory = try files.open("/proc/self/mem", as: .memory)
    let pages = try PageMap(files)
    for segment in code.segments {
      segmentCount += 1
      if let verity = code.files.verity(of: segment),
        try pages.isFileBacked(segment.addresses, chunk: &chunk)
      {
        verifiedSegmentCount += 1
        hash.append(bigEndian: Self.verityMark)
        hash.append(verity.span)
        hash.append(bigEndian: segment.fileOffset)
        hash.append(bigEndian: segment.byteCount)
      } else {
        hash.append(bigEndian: segment.fileOffset)
        hash.append(bigEndian: segment.byteCount)
        do throws(SystemFault) {
          try Self.append(segment.addresses, of: memory, to: &hash, chunk: &chunk)
        } catch {
          throw .unreadable(.memory, code: error.code)
        }
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
