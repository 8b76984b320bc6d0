import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization

/// A digest that a second thread makes, while this one makes another.
final class BackgroundDigest: Sendable {
  typealias Outcome = Result<TimedDigest, MeasurementError>

  private let outcome: OutcomeBox
  private let thread: Thread?

  /// Starts the work. If no thread can be created, this thread does it at once.
  init(_ work: @escaping @Sendable () -> Outcome) {
    let outcome = OutcomeBox()
    self.outcome = outcome
    thread = try? Thread { outcome.value.withLock { $0 = work() } }
    if thread == nil { outcome.value.withLock { $0 = work() } }
  }

  /// Waits for the digest, and returns it.
  func wait() -> Outcome {
    thread?.join()
    return outcome.value.withLock { $0 } ?? .failure(.cryptography)
  }

  private final class OutcomeBox: Sendable {
    let value = Mutex<Outcome?>(nil)
  }
}

/// A digest and the time that it took.
struct TimedDigest: Sendable {
  let digest: Digest
  let nanoseconds: UInt64
  /// Whether the digest is based on a file's fs-verity instead of its bytes.
  let hasVerity: Bool

  /// Takes a digest that was known, after an examination that took this time.
  init(known digest: Digest, nanoseconds: UInt64) { self.init(digest, nanoseconds: nanoseconds) }

  /// Takes the digest of bytes, which took this time.
  init(_ digest: Digest, nanoseconds: UInt64) {
    (self.digest, self.nanoseconds, hasVerity) = (digest, nanoseconds, false)
  }

  /// Computes the digest of the bytes that `body` appends. `body` returns whether they are based on a file's fs-verity.
  init(
    _ body: (inout SHA256Stream) throws(MeasurementError) -> Bool
  ) throws(MeasurementError) {
    let start = monotonicNanoseconds()
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hasVerity = try body(&hash)
    do throws(CryptographyFailure) { digest = try hash.finish() } catch { throw .cryptography }
    nanoseconds = monotonicNanoseconds() - start
  }
}
