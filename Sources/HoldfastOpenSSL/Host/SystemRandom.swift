import COpenSSL
import Glibc
import HoldfastCore

/// The kernel's random bytes.
///
/// Source: getrandom(2).
public struct SystemRandom: RandomSource, Sendable {
  public init() {}

  public mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) {
    var filled = 0
    while filled < bytes.count {
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe getrandom(buffer.baseAddress! + filled, buffer.count - filled, 0)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw RandomFailure() }
      filled += count
    }
  }
}
