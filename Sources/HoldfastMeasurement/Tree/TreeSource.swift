import Glibc
import HoldfastCore
import HoldfastLinux

/// Bytes of an open file, or of this process's memory, that are hashed as a tree. Any number of threads may read them at once.
package final class TreeSource: Sendable {
  /// The number of bytes.
  package let byteCount: UInt64

  private let file: OpenFile
  private let source: MeasuredSource
  private let start: UInt64
  /// The state of a file that must not change meanwhile; nil for memory.
  private let state: FileState?

  /// Reads a whole file, which must be a regular one.
  package init(file: consuming Descriptor, as source: MeasuredSource) throws(MeasurementError) {
    let state: FileState
    do throws(SystemError) { state = try FileState(of: file) } catch { throw .unreadable(source, code: error.number) }
    (self.file, self.source, start, self.state) = (OpenFile(file), source, 0, state)
    byteCount = state.byteCount
  }

  /// Reads a range of memory.
  init(memory: OpenFile, _ addresses: Range<UInt64>) {
    (file, source, start, state) = (memory, .memory, addresses.lowerBound, nil)
    byteCount = addresses.upperBound - addresses.lowerBound
  }

  /// Returns the byte count of a chunk.
  func byteCount(at index: Int) -> Int {
    Int(min(UInt64(TreeDigest.chunkByteCount), byteCount - UInt64(index) * UInt64(TreeDigest.chunkByteCount)))
  }

  /// Reads a chunk, and returns its leaf.
  ///
  /// - Parameter buffer: space for a chunk, which is at its beginning afterwards.
  /// - Throws: `unreadable`, with `ETXTBSY` for a file that became shorter; `cryptography`.
  func leaf(at index: Int, buffer: inout [UInt8]) throws(MeasurementError) -> Digest {
    let offset = UInt64(index) * UInt64(TreeDigest.chunkByteCount)
    let wanted = byteCount(at: index)
    do throws(SystemError) {
      guard try read(wanted, at: offset, into: &buffer) == wanted else {
        throw SystemError(state == nil ? EIO : ETXTBSY)
      }
    } catch { throw .unreadable(source, code: error.number) }
    do throws(CryptographyFailure) {
      return try TreeDigest.leaf(of: buffer.span.extracting(first: wanted), at: index)
    } catch { throw .cryptography }
  }

  /// Checks after the reading that a file is as it was before: otherwise some chunks could be of before, and others of after.
  ///
  /// - Throws: `unreadable` with `ETXTBSY` if it changed.
  func checkIsUnchanged() throws(MeasurementError) {
    guard let state else { return }
    do throws(SystemError) {
      var end = [UInt8](repeating: 0, count: 1)
      guard try read(1, at: byteCount, into: &end) == 0, try FileState(of: file.descriptor) == state else {
        throw SystemError(ETXTBSY)
      }
    } catch { throw .unreadable(source, code: error.number) }
  }

  /// Reads until there are so many bytes, or to the end.
  private func read(_ count: Int, at offset: UInt64, into buffer: inout [UInt8]) throws(SystemError) -> Int {
    var done = 0
    while done < count {
      var span = buffer.mutableSpan
      var rest = span._mutatingExtracting(done..<count)
      let added = try file.descriptor.read(into: &rest, at: start + offset + UInt64(done))
      if added == 0 { break }
      done += added
    }
    return done
  }
}

/// A file that several sources read.
final class OpenFile: Sendable {
  let descriptor: Descriptor
  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}

/// The size and the time of the last change of a regular file's bytes.
private struct FileState: Equatable {
  let byteCount: UInt64
  private let seconds, nanoseconds: Int

  init(of file: borrowing Descriptor) throws(SystemError) {
    let status = try file.status()
    guard status.st_mode & S_IFMT == S_IFREG else { throw SystemError(EINVAL) }
    byteCount = UInt64(status.st_size)
    (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }
}
