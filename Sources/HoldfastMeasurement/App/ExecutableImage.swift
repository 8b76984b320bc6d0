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
    try measure(HostFiles(), at: path, into: &hash, chunk: &chunk)
    do throws(CryptographyFailure) { return try hash.finish() } catch { throw .cryptography }
  }

  static func measure<Hash: StreamingDigest>(
    _ files: HostFiles, at path: String = path, into hash: inout Hash, chunk: inout [UInt8]
  ) throws(MeasurementError) {
    let file = try files.open(path, as: .executable)
    do throws(SystemFault) {
      if let verity = try verityBytes(of: file) {
        hash.append(verity.span)
        return
      }
      while true {
        var span = chunk.mutableSpan
        let count = try file.read(into: &span)
        if count == 0 { return }
        hash.append(chunk.span.extracting(first: count))
      }
    } catch {
      throw .unreadable(.executable, code: error.code)
    }
  }

  /// `FS_IOC_MEASURE_VERITY`, `_IOWR('f', 134, struct fsverity_digest)`.
  private static let measureVerity: UInt = 0xc004_6686

  /// The algorithm's name, a zero byte and the fs-verity digest; nil for a file or a file system without.
  ///
  /// Source: Linux, Documentation/filesystems/fsverity.rst.
  private static func verityBytes(of file: borrowing OpenFile) throws(SystemFault) -> [UInt8]? {
    var request: (algorithm: UInt16, size: UInt16, digest: InlineArray<64, UInt8>) = (0, 64, .init(repeating: 0))
    let descriptor = file.descriptor
    let result = unsafe withUnsafeMutablePointer(to: &request) { unsafe ioctl(descriptor, measureVerity, $0) }
    guard result == 0 else {
      let fault = SystemFault.last
      switch fault.code {
      case ENODATA, ENOTTY, EOPNOTSUPP, ENOSYS, EINVAL: return nil
      default: throw fault
      }
    }
    let count = min(Int(request.size), 64)
    return try verityBytes(algorithm: request.algorithm, digest: request.digest.span.extracting(first: count))
  }

  /// The same bytes, from what the kernel answered: algorithm 1 is SHA-256, 2 is SHA-512.
  static func verityBytes(algorithm: UInt16, digest: Span<UInt8>) throws(SystemFault) -> [UInt8] {
    let name: StaticString
    switch (algorithm, digest.count) {
    case (1, 32): name = "sha256"
    case (2, 64): name = "sha512"
    default: throw SystemFault(code: EPROTO)
    }
    var bytes: [UInt8] = []
    bytes.append(domain: name)
    bytes.append(digest)
    return bytes
  }
}
