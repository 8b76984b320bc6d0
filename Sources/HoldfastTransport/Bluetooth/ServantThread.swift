import Glibc

/// A thread that works until its owner lets it go, and has ended once that is done.
final class ServantThread: @unchecked Sendable {
  private let stop: Signal
  private var thread = pthread_t()

  /// Runs `body`, which has to return soon after the signal is raised.
  init(_ body: @escaping @Sendable (Signal) -> Void) throws(BluetoothError) {
    do throws(TransportError) { stop = try Signal() } catch { throw BluetoothError(error) }
    let stop = stop
    let work = unsafe Unmanaged.passRetained(Work { body(stop) })
    let failure = unsafe pthread_create(
      &thread, nil,
      { work in
        unsafe Unmanaged<Work>.fromOpaque(work!).takeRetainedValue().run()
        return nil
      }, work.toOpaque())
    guard failure == 0 else {
      unsafe work.release()
      throw .other(errno: failure)
    }
  }

  deinit {
    stop.raise()
    pthread_join(thread, nil)
  }

  private final class Work: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }
}
