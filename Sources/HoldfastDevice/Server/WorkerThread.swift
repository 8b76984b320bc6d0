import Glibc

/// Runs `body` on a thread of its own with a stack of `stackByteCount`; says whether there could be one.
///
/// A connection waits for its peer: on Swift's cooperative pool it would hold one of a handful of threads.
func startThread(stackByteCount: Int = 512 * 1024, _ body: @escaping @Sendable () -> Void) -> Bool {
  var attributes = pthread_attr_t()
  guard unsafe pthread_attr_init(&attributes) == 0 else { return false }
  defer { unsafe pthread_attr_destroy(&attributes) }
  guard unsafe pthread_attr_setstacksize(&attributes, stackByteCount) == 0,
    unsafe pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED)) == 0
  else { return false }
  let work = unsafe Unmanaged.passRetained(ThreadBody(body))
  var thread = pthread_t()
  let result = unsafe pthread_create(
    &thread, &attributes,
    { argument in
      let work = unsafe Unmanaged<ThreadBody>.fromOpaque(argument!).takeRetainedValue()
      work.run()
      return nil
    }, work.toOpaque())
  if result != 0 { unsafe work.release() }
  return result == 0
}

private final class ThreadBody: Sendable {
  let run: @Sendable () -> Void

  init(_ run: @escaping @Sendable () -> Void) {
    self.run = run
  }
}
