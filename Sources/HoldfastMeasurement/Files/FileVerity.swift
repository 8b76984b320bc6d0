import Glibc
import HoldfastCore

/// What the kernel says of a file's fs-verity.
///
/// Source: Linux, Documentation/filesystems/fsverity.rst.
enum FileVerity {
  /// `FS_IOC_MEASURE_VERITY`, `_IOWR('f', 134, struct fsverity_digest)`.
  private static let measureVerity: UInt = 0xc004_6686

  /// The algorithm's name, a zero byte and the fs-verity digest; nil for a file or a file system without.
  static func bytes(of file: borrowing OpenFile) throws(SystemFault) -> [UInt8]? {
    guard isKernels(fileSystem: try fileSystemType(of: file.descriptor)) else { return nil }
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
    return try bytes(algorithm: request.algorithm, digest: request.digest.span.extracting(first: count))
  }

  /// Whether it is the kernel itself that checks and answers there: ext4, Btrfs and F2FS. The answer of a FUSE file system
  /// is that of a program, which any user can run.
  ///
  /// Source: Linux, include/uapi/linux/magic.h.
  static func isKernels(fileSystem type: UInt64) -> Bool {
    [0xef53, 0x9123_683e, 0xf2f5_2010].contains(type)
  }

  /// The same bytes, from what the kernel answered: algorithm 1 is SHA-256, 2 is SHA-512.
  static func bytes(algorithm: UInt16, digest: Span<UInt8>) throws(SystemFault) -> [UInt8] {
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
