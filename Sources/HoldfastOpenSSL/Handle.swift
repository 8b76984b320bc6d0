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
package func constantTimeEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
  guard left.count == right.count else { return false }
  guard !left.isEmpty else { return true }
  return unsafe left.withUnsafeBufferPointer { left in
    unsafe right.withUnsafeBufferPointer { right in
      unsafe CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
    }
  }
}

/// Secret bytes of a count known only at run time, wiped when they go out of scope.
///
/// There is no `==` and no `description`. Where the count is fixed, `Secret` is better.
@safe
package struct SecretBytes: ~Copyable, @unchecked Sendable {
  private let storage: UnsafeMutableBufferPointer<UInt8>

  /// `count` zero bytes, to be written in place.
  package init(zeros count: Int) {
    unsafe storage = .allocate(capacity: count)
    unsafe storage.initialize(repeating: 0)
  }

  /// Copies `bytes`.
  package init(copying bytes: Span<UInt8>) {
    self.init(zeros: bytes.count)
    for index in bytes.indices { unsafe storage[index] = bytes[index] }
  }

  deinit {
    unsafe OPENSSL_cleanse(storage.baseAddress, storage.count)
    unsafe storage.deallocate()
  }

  package var count: Int { unsafe storage.count }

  /// The bytes; valid as long as this is.
  package var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get {
      let span = unsafe Span(_unsafeElements: UnsafeBufferPointer(storage))
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }

  /// Lends the bytes to `body`, also where this is part of an object.
  package borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(bytes)
  }

  /// The bytes, to be changed in place.
  package var mutableBytes: MutableSpan<UInt8> {
    @_lifetime(&self)
    mutating get {
      let span = unsafe MutableSpan(_unsafeElements: storage)
      return unsafe _overrideLifetime(span, mutating: &self)
    }
  }
}
