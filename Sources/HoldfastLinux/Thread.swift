import Glibc

/// A thread that runs one closure: for work that blocks, which would hold one of the few threads of Swift's cooperative pool.
///
/// Its owner waits for its end, at the latest when it releases the thread.
package final class Thread: @unchecked Sendable {
  private var handle: pthread_t?

  /// Starts a thread that runs `body`.
  ///
  /// - Parameter stackByteCount: the size of its stack; nil for the system's default.
  /// - Throws: the `errno` of pthread_create(3) where there is no thread to be had.
  package init(stackByteCount: Int? = nil, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
    handle = try Thread.start(stackByteCount: stackByteCount, body)
  }

  deinit { join() }

  /// Waits until the thread has ended. Only the owner may call it.
  package func join() {
    guard let handle else { return }
    pthread_join(handle, nil)
    self.handle = nil
  }

  /// Starts a thread whose end no other thread waits for, and returns whether there was one to be had.
  ///
  /// Its stack has 512 KiB, so that a server can have many.
  @discardableResult
  package static func detach(_ body: @escaping @Sendable () -> Void) -> Bool {
    guard let handle = try? start(stackByteCount: 512 * 1024, body) else { return false }
    pthread_detach(handle)
    return true
  }

  private static func start(
    stackByteCount: Int?, _ body: @escaping @Sendable () -> Void
  ) throws(SystemError) -> pthread_t {
    var attributes = pthread_attr_t()
    try check(unsafe pthread_attr_init(&attributes))
    defer { unsafe pthread_attr_destroy(&attributes) }
    if let stackByteCount { try check(unsafe pthread_attr_setstacksize(&attributes, stackByteCount)) }
    let work = unsafe Unmanaged.passRetained(Body(body))
    var handle = pthread_t()
    let failure = unsafe pthread_create(
      &handle, &attributes,
      { work in
        unsafe Unmanaged<Body>.fromOpaque(work!).takeRetainedValue().run()
        return nil
      }, work.toOpaque())
    if failure != 0 { unsafe work.release() }
    try check(failure)
    return handle
  }

  /// The functions of pthreads return their `errno`.
  private static func check(_ number: Int32) throws(SystemError) {
    guard number == 0 else { throw SystemError(number) }
  }

  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }
}
