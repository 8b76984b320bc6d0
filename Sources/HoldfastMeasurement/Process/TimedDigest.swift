import Glibc
import HoldfastCore
import HoldfastOpenSSL

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
