import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization

/// A digest that a second thread makes, while this one makes another.
final class BackgroundDigest: Sendable {
  typealias Outcome = Result<TimedDigest, MeasurementError>

  private let outcome: OutcomeBox
  private let thread: Thread?

  /// Begins. Where there is no thread to be had, the work is done here and now.
  init(_ work: @escaping @Sendable () -> Outcome) {
    let outcome = OutcomeBox()
    self.outcome = outcome
    thread = try? Thread { outcome.value.withLock { $0 = work() } }
    if thread == nil { outcome.value.withLock { $0 = work() } }
  }

  /// Waits for the digest.
  func wait() -> Outcome {
    thread?.join()
    return outcome.value.withLock { $0 } ?? .failure(.cryptography)
  }

  private final class OutcomeBox: Sendable {
    let value = Mutex<Outcome?>(nil)
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
    let start = monotonicNanoseconds()
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hasVerity = try body(&hash)
    do throws(CryptographyFailure) { digest = try hash.finish() } catch { throw .cryptography }
    nanoseconds = monotonicNanoseconds() - start
  }
}
