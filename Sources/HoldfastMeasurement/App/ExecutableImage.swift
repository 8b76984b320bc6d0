import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// The measurement of the executable file.
///
/// If the file has fs-verity, the measurement is SHA-256 of the algorithm's name as the kernel writes it, `sha256` or `sha512`,
/// one zero byte, and the file's fs-verity digest of 32 or 64 bytes. Otherwise it is SHA-256 of the file.
package enum ExecutableImage {
  static let path = "/proc/self/exe"

  /// Returns the component `app.image` of a process that runs the executable file at `path`, for a service to approve.
  ///
  /// - Throws: `unreadable`, `malformed` for a file that is not an ELF executable, and `cryptography` if the library fails.
  package static func digest(of path: String) throws(MeasurementError) -> Digest {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    var chunk = [UInt8](repeating: 0, count: Measurer.chunkByteCount)
    guard try isExecutable(HostFiles(), at: path) else { throw .malformed(.executable) }
    _ = try measure(HostFiles(), at: path, into: &hash, chunk: &chunk)
    do throws(CryptographyFailure) { return try hash.finish() } catch { throw .cryptography }
  }

  /// Returns the component `app.image` in both forms, of the same bytes, which are read once.
  ///
  /// - Throws: the errors of ``digest(of:)``.
  package static func digests(of path: String) throws(MeasurementError) -> (flat: Digest, tree: Digest) {
    let files = HostFiles()
    guard try isExecutable(files, at: path) else { throw .malformed(.executable) }
    let file = try files.open(path, as: .executable)
    let verity: [UInt8]?
    do throws(SystemError) { verity = try FileVerity.bytes(of: file) } catch {
      throw .unreadable(.executable, code: error.number)
    }
    var flat = SHA256Stream()
    if let verity {
      flat.append(verity.span)
      do throws(CryptographyFailure) {
        let digest: Digest = try flat.finish()
        return (digest, digest)
      } catch { throw .cryptography }
    }
    let source = try TreeSource(file: file, as: .executable)
    var chunk = [UInt8](repeating: 0, count: TreeDigest.chunkByteCount)
    var leaves: [Digest] = []
    for index in 0..<TreeDigest.chunkCount(of: source.byteCount) {
      leaves.append(try source.leaf(at: index, buffer: &chunk))
      flat.append(chunk.span.extracting(first: source.byteCount(at: index)))
    }
    try source.checkIsUnchanged()
    do throws(CryptographyFailure) {
      return (try flat.finish(), try TreeDigest.root(of: leaves, byteCount: source.byteCount))
    } catch { throw .cryptography }
  }

  /// Returns whether the file has the complete header of an ELF program, with an entry point.
  ///
  /// Source: System V ABI, "ELF Header": `e_ident`, `e_type` (`ET_EXEC` or `ET_DYN`), `e_entry`.
  private static func isExecutable(_ files: HostFiles, at path: String) throws(MeasurementError) -> Bool {
    let file = try files.open(path, as: .executable)
    var header = [UInt8](repeating: 0, count: 64)
    let count: Int
    do throws(SystemError) {
      var span = header.mutableSpan
      count = try file.read(into: &span)
    } catch { throw .unreadable(.executable, code: error.number) }
    let isWide = header[4] == 2
    guard count >= (isWide ? 64 : 52), header[..<4] == [0x7f, 0x45, 0x4c, 0x46], isWide || header[4] == 1,
      header[5] == 1 || header[5] == 2, header[6] == 1
    else { return false }
    let type = header[5] == 1 ? header[16...17].reversed() : Array(header[16...17])
    return [[0, 2], [0, 3]].contains(type) && header[24..<(isWide ? 32 : 28)].contains { $0 != 0 }
  }

  /// Appends the measurement of the file to `hash`, and returns whether the file has fs-verity.
  static func measure<Hash: StreamingDigest>(
    _ files: HostFiles, at path: String = path, into hash: inout Hash, chunk: inout [UInt8]
  ) throws(MeasurementError) -> Bool {
    let file = try files.open(path, as: .executable)
    do throws(SystemError) {
      if let verity = try FileVerity.bytes(of: file) {
        hash.append(verity.span)
        return true
      }
      while true {
        var span = chunk.mutableSpan
        let count = try file.read(into: &span)
        if count == 0 { return false }
        hash.append(chunk.span.extracting(first: count))
      }
    } catch {
      throw .unreadable(.executable, code: error.number)
    }
  }
}

/// The measurement of all code that runs from files, as it is in memory now.
///
/// It is SHA-256 over each executable segment's file offset (u64, big-endian), length (u64, big-endian) and bytes: the segments
/// of the executable first, then by path, offset and length. It contains neither names nor addresses, so it is independent of
/// the app's location and of address space randomisation.
///
/// If the file has fs-verity and the segment has no private page, the segment is represented by eight bytes 0xff, which are not a
/// file offset, the algorithm's name, 0x00, the fs-verity digest, offset and length. The kernel checks each page of such a file
/// when it is read, and no process can write to the file.
struct ExecutableText {
  /// The number of segments.
  private(set) var segmentCount = 0
  /// The number of segments that are represented by their file's fs-verity digest.
  private(set) var verifiedSegmentCount = 0

  private static let verityMark = UInt64.max

  init<Hash: StreamingDigest>(
    measuring code: LiveCode, _ files: HostFiles, into hash: inout Hash, chunk: inout [UInt8]
  ) throws(MeasurementError) {
    let memory = try files.open("/proc/self/mem", as: .memory)
    let pages = try PageMap(files)
    for segment in code.segments {
      segmentCount += 1
      let verity = try Self.verity(of: segment, in: code, pages, chunk: &chunk)
      Self.append(segment, verity, to: &hash)
      if verity != nil {
        verifiedSegmentCount += 1
      } else {
        do throws(SystemError) {
          try Self.append(segment.addresses, of: memory, to: &hash, chunk: &chunk)
        } catch {
          throw .unreadable(.memory, code: error.number)
        }
      }
    }
  }

  /// Returns the fs-verity bytes that represent a segment; nil if its own bytes are hashed.
  static func verity(
    of segment: ExecutableSegment, in code: LiveCode, _ pages: borrowing PageMap, chunk: inout [UInt8]
  ) throws(MeasurementError) -> [UInt8]? {
    guard let verity = code.files.verity(of: segment) else { return nil }
    return try pages.isFileBacked(segment.addresses, chunk: &chunk) ? verity : nil
  }

  /// Appends what comes before the bytes of a segment, or represents them.
  static func append<Hash: StreamingDigest>(_ segment: ExecutableSegment, _ verity: [UInt8]?, to hash: inout Hash) {
    if let verity {
      hash.append(bigEndian: verityMark)
      hash.append(verity.span)
    }
    hash.append(bigEndian: segment.fileOffset)
    hash.append(bigEndian: segment.byteCount)
  }

  private static func append<Hash: StreamingDigest>(
    _ addresses: Range<UInt64>, of memory: borrowing Descriptor, to hash: inout Hash, chunk: inout [UInt8]
  ) throws(SystemError) {
    var address = addresses.lowerBound
    while address < addresses.upperBound {
      let wanted = min(UInt64(chunk.count), addresses.upperBound - address)
      var span = chunk.mutableSpan
      var part = span._mutatingExtracting(first: Int(wanted))
      let count = try memory.read(into: &part, at: address)
      guard count > 0 else { throw SystemError(EIO) }
      hash.append(chunk.span.extracting(first: count))
      address += UInt64(count)
    }
  }
}
