import Glibc
import HoldfastCore
import HoldfastOpenSSL

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

/// A digest and how long it took.
struct TimedDigest: Sendable {
  let digest: Digest
  let nanoseconds: UInt64
  /// Whether a file's fs-verity answered for its bytes.
  let hasVerity: Bool

  /// Makes a digest of what `body` appends; it returns whether a file's fs-verity answered for its bytes.
  init(
    _ body: (inout SHA256Stream) throws(MeasurementError) -> Bool
  ) throws(MeasurementError) {
    let start = Self.now()
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hasVerity = try body(&hash)
    do throws(CryptographyFailure) { digest = try hash.finish() } catch { throw .cryptography }
    nanoseconds = Self.now() - start
  }

  private static func now() -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
