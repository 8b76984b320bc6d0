import Glibc

/// A thread of its own for work that blocks.
enum BackgroundThread {
  static func start(_ body: @escaping @Sendable () -> Void) {
    var thread = pthread_t()
    let context = unsafe Unmanaged.passRetained(Box(body)).toOpaque()
    let failure = unsafe pthread_create(
      &thread, nil,
      { context in
        unsafe Unmanaged<Box>.fromOpaque(context!).takeRetainedValue().body()
        return nil
      }, context)
    if failure == 0 { pthread_detach(thread) }
  }

  private final class Box {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
}
