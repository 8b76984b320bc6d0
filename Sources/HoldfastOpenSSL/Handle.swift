import COpenSSL
import HoldfastCore

/// An object of libcrypto, which is freed when it goes out of scope.
///
/// It may move to another thread. Its owner changes it only in `mutating` functions, so only one thread at a time does.
@safe
struct Handle: ~Copyable, @unchecked Sendable {
  /// The object, valid while the handle exists.
  let pointer: OpaquePointer
  private let free: @Sendable (OpaquePointer?) -> Void

  /// Takes over `pointer`; throws if it is null.
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

/// Returns the opaque error, and clears libcrypto's error queue.
func failure() -> CryptographyFailure {
  ERR_clear_error()
  return CryptographyFailure()
}

/// Throws unless libcrypto returned 1.
func check(_ result: CInt) throws(CryptographyFailure) {
  guard result == 1 else { throw failure() }
}

/// Secret bytes whose count is known only at run time. They are wiped when they go out of scope.
///
/// There is no `==` and no `description`. Use `Secret` if the count is fixed.
@safe
package struct SecretBytes: ~Copyable, @unchecked Sendable {
  private let storage: UnsafeMutableBufferPointer<UInt8>

  /// Creates `count` zero bytes, to be written in place.
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

  /// The number of bytes, which is public.
  package var count: Int { unsafe storage.count }

  /// The bytes, valid while this value exists.
  package var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get {
      let span = unsafe Span(_unsafeElements: UnsafeBufferPointer(storage))
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }

  /// Lends the bytes to `body`, also if this value is a property of an object.
  package borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(bytes)
  }

  /// The bytes, for changes in place.
  package var mutableBytes: MutableSpan<UInt8> {
    @_lifetime(&self)
    mutating get {
      let span = unsafe MutableSpan(_unsafeElements: storage)
      return unsafe _overrideLifetime(span, mutating: &self)
    }
  }
}
