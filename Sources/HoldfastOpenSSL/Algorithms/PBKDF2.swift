import COpenSSL
import HoldfastCore

/// A key from a passphrase, made slow by repetition.
///
/// Source: RFC 8018 §5.2. Timing: depends on the byte counts and the iterations alone.
public enum PBKDF2 {
  /// Fills `output`, at least one byte; throws when there is no iteration.
  public static func derive(
    hash: HMAC, passphrase: Span<UInt8>, salt: Span<UInt8>, iterationCount: Int, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    guard iterationCount >= 1, let iterations = CInt(exactly: iterationCount), !output.isEmpty,
      let outputByteCount = CInt(exactly: output.count), let saltByteCount = CInt(exactly: salt.count),
      let passphraseByteCount = CInt(exactly: passphrase.count)
    else { throw CryptographyFailure() }
    let result = unsafe passphrase.withUnsafeBytes { passphrase in
      unsafe salt.withUnsafeBufferPointer { salt in
        unsafe output.withUnsafeMutableBufferPointer { output in
          unsafe PKCS5_PBKDF2_HMAC(
            passphrase.bindMemory(to: CChar.self).baseAddress, passphraseByteCount, salt.baseAddress, saltByteCount,
            iterations, hash.digest, outputByteCount, output.baseAddress)
        }
      }
    }
    guard result == 1 else {
      wipe(&output)
      throw failure()
    }
  }
}
