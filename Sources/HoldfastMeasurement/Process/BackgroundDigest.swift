import Glibc
import HoldfastCore

/// A digest that is made on a thread of its own, while this one makes another.
final class BackgroundDigest: @unchecked Sendable {
  typealias Outcome = Result<TimedDigest, MeasurementError>

  private let work: @Sendable () -> Outcome
  private var outcome: Outcome?
  private var thread: pthread_t?

  /// Begins. Where there is no thread to be had, the work is done when its outcome is asked for.
  init(_ work: @escaping @Sendable () -> Outcome) {
    self.work = work
    var fresh = pthread_t()
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    let result = unsafe pthread_create(
      &fresh, nil,
      { context in
        guard let context = unsafe context else { return nil }
        let digest = unsafe Unmanaged<BackgroundDigest>.fromOpaque(context).takeUnretainedValue()
        digest.outcome = digest.work()
        return nil
      }, context)
    if result == 0 { thread = fresh }
  }

  deinit { join() }

  /// Waits for the digest.
  func wait() -> Outcome {
    join()
    let outcome = outcome ?? work()
    self.outcome = outcome
    return outcome
  }

  private func join() {
    guard let thread else { return }
    pthread_join(thread, nil)
    self.thread = nil
  }
}
