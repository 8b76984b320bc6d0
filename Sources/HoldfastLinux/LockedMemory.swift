import Glibc

/// Memory that is never written to the disk: it is locked, left out of core files, and wiped when it goes out of scope.
///
/// Source: mlock(2), madvise(2) MADV_DONTDUMP and MADV_WIPEONFORK.
@safe
package struct LockedMemory: ~Copyable, @unchecked Sendable {
  private let storage: UnsafeMutableRawBufferPointer

  /// Creates `byteCount` zero bytes.
  ///
  /// - Throws: `ENOMEM` or `EPERM` if the limit of locked memory (`RLIMIT_MEMLOCK`) is too low.
  package init(byteCount: Int) throws(SystemError) {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS
    guard let start = unsafe mmap(nil, byteCount, PROT_READ | PROT_WRITE, flags, -1, 0), unsafe start != MAP_FAILED
    else { throw SystemError.last }
    guard unsafe mlock(start, byteCount) == 0 else {
      let number = errno
      unsafe munmap(start, byteCount)
      throw SystemError(number)
    }
    unsafe madvise(start, byteCount, Self.dontDump)
    unsafe madvise(start, byteCount, Self.wipeOnFork)
    unsafe storage = UnsafeMutableRawBufferPointer(start: start, count: byteCount)
  }

  deinit {
    unsafe explicit_bzero(storage.baseAddress!, storage.count)
    unsafe munmap(storage.baseAddress, storage.count)
  }

  // The C library's module leaves these out. Source: Linux, include/uapi/asm-generic/mman-common.h.
  private static let dontDump: CInt = 16
  private static let wipeOnFork: CInt = 18

  /// The bytes, for changes in place.
  package var bytes: MutableSpan<UInt8> {
    @_lifetime(&self)
    mutating get {
      let span = unsafe MutableSpan(_unsafeElements: storage.bindMemory(to: UInt8.self))
      return unsafe _overrideLifetime(span, mutating: &self)
    }
  }

  /// Lends the bytes to `body` for reading.
  package borrowing func withBytes<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
    body(unsafe Span(_unsafeElements: UnsafeBufferPointer(storage.bindMemory(to: UInt8.self))))
  }

  /// Overwrites a part with zeros.
  package mutating func wipe(_ range: Range<Int>) {
    unsafe explicit_bzero(storage.baseAddress! + range.lowerBound, range.count)
  }
}
