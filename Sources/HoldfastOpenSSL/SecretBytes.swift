import COpenSSL

/// Secret bytes of a count known only at run time, wiped when they go out of scope.
///
/// There is no `==` and no `description`. Where the count is fixed, `Secret` is better.
@safe
public struct SecretBytes: ~Copyable, @unchecked Sendable {
  private let storage: UnsafeMutableBufferPointer<UInt8>

  /// `count` zero bytes, to be written in place.
  public init(zeros count: Int) {
    unsafe storage = .allocate(capacity: count)
    unsafe storage.initialize(repeating: 0)
  }

  /// Copies `bytes`.
  public init(copying bytes: Span<UInt8>) {
    self.init(zeros: bytes.count)
    for index in bytes.indices { unsafe storage[index] = bytes[index] }
  }

  deinit {
    unsafe OPENSSL_cleanse(storage.baseAddress, storage.count)
    unsafe storage.deallocate()
  }

  public var count: Int { unsafe storage.count }

  /// The bytes; valid as long as this is.
  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get {
      let span = unsafe Span(_unsafeElements: UnsafeBufferPointer(storage))
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }

  /// Lends the bytes to `body`, also where this is part of an object.
  public borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(bytes)
  }

  /// The bytes, to be changed in place.
  public var mutableBytes: MutableSpan<UInt8> {
    @_lifetime(&self)
    mutating get {
      let span = unsafe MutableSpan(_unsafeElements: storage)
      return unsafe _overrideLifetime(span, mutating: &self)
    }
  }
}
