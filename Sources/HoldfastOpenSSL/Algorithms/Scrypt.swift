import COpenSSL
import HoldfastCore

/// The scrypt key derivation function: slow and large in memory on purpose.
///
/// Source: RFC 7914 §6. Timing: its memory accesses depend on the password, as the algorithm has it.
public enum Scrypt {
  /// Fills `output` from a password and a salt, each of any number of bytes. Throws when there is no memory for it.
  public static func derive(
    password: Span<UInt8>, salt: Span<UInt8>, cost: ScryptCost, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    // What RFC 7914 §2 needs, and as much again for libcrypto's own bookkeeping.
    let memoryLimit = 2 * cost.memoryByteCount + 1 << 20
    let result = unsafe password.withUnsafeBufferPointer { password in
      unsafe salt.withUnsafeBufferPointer { salt in
        unsafe output.withUnsafeMutableBufferPointer { output in
          // libcrypto takes a null password for none at all.
          let start = unsafe password.baseAddress ?? salt.baseAddress
          return unsafe EVP_PBE_scrypt(
            UnsafeRawPointer(start)?.assumingMemoryBound(to: CChar.self), password.count, salt.baseAddress, salt.count,
            UInt64(1) << UInt64(cost.logarithm), UInt64(cost.blockSize), UInt64(cost.parallelization),
            UInt64(memoryLimit), output.baseAddress, output.count)
        }
      }
    }
    guard result == 1 else {
      wipe(&output)
      throw failure()
    }
  }
}

/// What a derivation with ``Scrypt`` costs: bounded, so that nobody's file asks for all of the memory.
///
/// Source: RFC 7914 §2.
public struct ScryptCost: Sendable, Equatable {
  /// The binary logarithm of N, 1 to 20.
  public let logarithm: Int
  /// r, 1 to 8.
  public let blockSize: Int
  /// p, 1 to 4.
  public let parallelization: Int

  /// Nil outside these bounds, and for more than 256 MiB.
  public init?(logarithm: Int, blockSize: Int, parallelization: Int) {
    guard (1...20).contains(logarithm), (1...8).contains(blockSize), (1...4).contains(parallelization) else {
      return nil
    }
    (self.logarithm, self.blockSize, self.parallelization) = (logarithm, blockSize, parallelization)
    guard memoryByteCount <= 1 << 28 else { return nil }
  }

  private init(logarithm: Int) {
    (self.logarithm, blockSize, parallelization) = (logarithm, 8, 1)
  }

  /// N = 2^15, r = 8, p = 1: 32 MiB, about a tenth of a second.
  public static let interactive = ScryptCost(logarithm: 15)
  /// N = 2^17, r = 8, p = 1: 128 MiB, about half a second.
  public static let archive = ScryptCost(logarithm: 17)

  /// 128 · r · N bytes.
  public var memoryByteCount: Int { 128 * blockSize << logarithm }
}
