import Glibc

/// A lock whose holder can wait until another holder has changed something.
///
/// Source: pthread_mutex_lock(3), pthread_cond_wait(3).
@safe package final class Monitor: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let change = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  package init() {
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe change.initialize(to: pthread_cond_t())
    unsafe pthread_mutex_init(mutex, nil)
    unsafe pthread_cond_init(change, nil)
  }

  deinit {
    unsafe pthread_cond_destroy(change)
    unsafe pthread_mutex_destroy(mutex)
    unsafe change.deallocate()
    unsafe mutex.deallocate()
  }

  /// Runs `body` while no other thread holds the lock, except during ``wait()``.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try body()
  }

  /// Does the same if no other thread holds the lock; otherwise returns nil at once.
  package func withLockIfFree<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result?
  ) throws(Failure) -> Result? {
    guard unsafe pthread_mutex_trylock(mutex) == 0 else { return nil }
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try body()
  }

  /// Releases the lock until another holder calls ``signal()``, or for no reason; then holds it again. Only its holder may call this.
  package func wait() {
    unsafe pthread_cond_wait(change, mutex)
  }

  /// Wakes every thread that waits. Only the holder of the lock may call this.
  package func signal() {
    unsafe pthread_cond_broadcast(change)
  }
}
