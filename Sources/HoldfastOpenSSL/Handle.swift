import COpenSSL
import HoldfastCore

/// One object of libcrypto, freed when it goes out of scope.
///
/// It may move to another thread; what owns it changes it through `mutating` functions alone, so by one thread at a time.
@safe
struct Handle: ~Copyable, @unchecked Sendable {
  /// The object; valid as long as the handle.
  let pointer: OpaquePointer
  private let free: @Sendable (OpaquePointer?) -> Void

  /// Takes over `pointer`; throws when libcrypto gave none.
  init(
    _ pointer: OpaquePointer?, freedBy free: @escaping @Sendable (OpaquePointer?) -> Void
  ) throws(CryptographyFailure) {
    guard let pointer = unsafe pointer else { throw failure() }
    unsafe self.pointer = pointer
    unsafe self.free = free
  }

  deinit {
    unsafe free(pointer)
  }
}

/// The one opaque error; what libcrypto queued about it is dropped.
func failure() -> CryptographyFailure {
  ERR_clear_error()
  return CryptographyFailure()
}

/// Throws unless libcrypto said 1.
func check(_ result: CInt) throws(CryptographyFailure) {
  guard result == 1 else { throw failure() }
}

/// Compares without revealing where the bytes differ; their counts are public.
///
/// Timing: depends on the counts alone.
public func constantTimeEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
  guard left.count == right.count else { return false }
  guard !left.isEmpty else { return true }
  return unsafe left.withUnsafeBufferPointer { left in
    unsafe right.withUnsafeBufferPointer { right in
      unsafe CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
    }
  }
}
