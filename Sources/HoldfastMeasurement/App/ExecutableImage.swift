import Glibc
import HoldfastCore
import HoldfastOpenSSL

/// The measurement of the executable file.
///
/// Where the file has fs-verity, SHA-256 of the algorithm's name as the kernel writes it, `sha256` or `sha512`, one zero
/// byte, and the file's fs-verity digest of 32 or 64 bytes; elsewhere, SHA-256 of the file.
public enum ExecutableImage {
  private static let path = "/proc/self/exe"

  /// What `app.image` is for a process that runs the executable file at `path`: what a service approves.
  ///
  /// - Throws: `unreadable`, and `cryptography` when the library fails.
  public static func digest(of path: String) throws(MeasurementError) -> Digest {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    var chunk = [UInt8](repeating: 0, count: Measurer.chunkByteCount)
    _ = try measure(HostFiles(), at: path, into: &hash, chunk: &chunk)
    do throws(CryptographyFailure) { return try hash.finish() } catch { throw .cryptography }
  }

  /// Returns whether the file has fs-verity.
  static func measure<Hash: StreamingDigest>(
    _ files: HostFiles, at path: String = path, into hash: inout Hash, chunk: inout [UInt8]
  ) throws(MeasurementError) -> Bool {
    let file = try files.open(path, as: .executable)
    do throws(SystemFault) {
      if let verity = try FileVerity.bytes(of: file) {
        hash.append(verity.span)
        return true
      }
      while true {
        var span = chunk.mutableSpan
        let count = try file.read(into: &span)
        if count == 0 { return false }
        hash.append(chunk.span.extracting(first: count))
      }
    } catch {
      throw .unreadable(.executable, code: error.code)
    }
  }
}
