import Glibc
import HoldfastCore
import HoldfastLinux

/// Which file it is, on which device.
struct FileIdentity: Equatable, Sendable {
  var deviceMajor: UInt64
  var deviceMinor: UInt64
  var inode: UInt64

  init(deviceMajor: UInt64, deviceMinor: UInt64, inode: UInt64) {
    self.deviceMajor = deviceMajor
    self.deviceMinor = deviceMinor
    self.inode = inode
  }

  /// Source: makedev(3).
  init(_ status: stat) {
    let device = UInt64(status.st_dev)
    self.init(
      deviceMajor: (device >> 32) & 0xffff_f000 | (device >> 8) & 0xfff,
      deviceMinor: (device >> 12) & 0xffff_ff00 | device & 0xff, inode: UInt64(status.st_ino))
  }
}

/// What lies now at the path that a mapping goes by.
public struct MappedFile: Equatable, Sendable {
  var identity: FileIdentity
  /// The algorithm's name, a zero byte and the fs-verity digest; nil for what is no plain file, or has none.
  var verity: [UInt8]?

  init(identity: FileIdentity, verity: [UInt8]? = nil) {
    self.identity = identity
    self.verity = verity
  }

  /// Looks at `path`; nil when there is nothing.
  init?(at path: [UInt8]) throws(SystemError) {
    do throws(SystemError) {
      let file = try Descriptor(opening: path, flags: O_RDONLY | O_NONBLOCK | O_NOCTTY)
      let status = try file.status()
      identity = FileIdentity(status)
      verity = status.st_mode & S_IFMT == S_IFREG ? try FileVerity.bytes(of: file) : nil
    } catch {
      guard error.isAbsence else { throw error }
      return nil
    }
  }
}

/// The files that code is mapped from, as they lie on disk now.
struct CodeFiles {
  private var files: [[UInt8]: MappedFile] = [:]

  /// Looks once at the path of each of these segments.
  init(of segments: [ExecutableSegment], _ host: HostFiles) throws(MeasurementError) {
    for path in Set(segments.map(\.path)) { files[path] = try host.mappedFile(at: path) }
  }

  /// Whether the code of a segment is no longer that of its path: the file is gone, or another lies there.
  ///
  /// The inode alone decides: Btrfs and OverlayFS tell another device in the map than of the file.
  func isReplaced(_ segment: ExecutableSegment) -> Bool {
    segment.isDeleted || files[segment.path]?.identity.inode != segment.identity.inode
  }

  /// The fs-verity bytes of the file that a segment is mapped from; nil where it has none, or where the path may lead to
  /// another file than the one that is mapped.
  func verity(of segment: ExecutableSegment) -> [UInt8]? {
    guard !segment.isDeleted, let file = files[segment.path], file.identity == segment.identity else { return nil }
    return file.verity
  }
}

/// What the kernel says of a file's fs-verity.
///
/// Source: Linux, Documentation/filesystems/fsverity.rst.
enum FileVerity {
  /// `FS_IOC_MEASURE_VERITY`, `_IOWR('f', 134, struct fsverity_digest)`.
  private static let measureVerity: UInt = 0xc004_6686

  /// The algorithm's name, a zero byte and the fs-verity digest; nil for a file or a file system without.
  static func bytes(of file: borrowing Descriptor) throws(SystemError) -> [UInt8]? {
    guard isKernels(fileSystem: try fileSystemType(of: file.number)) else { return nil }
    var request: (algorithm: UInt16, size: UInt16, digest: InlineArray<64, UInt8>) = (0, 64, .init(repeating: 0))
    let descriptor = file.number
    let result = unsafe withUnsafeMutablePointer(to: &request) { unsafe ioctl(descriptor, measureVerity, $0) }
    guard result == 0 else {
      let fault = SystemError.last
      switch fault.number {
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
  static func bytes(algorithm: UInt16, digest: Span<UInt8>) throws(SystemError) -> [UInt8] {
    let name: StaticString
    switch (algorithm, digest.count) {
    case (1, 32): name = "sha256"
    case (2, 64): name = "sha512"
    default: throw SystemError(EPROTO)
    }
    var bytes: [UInt8] = []
    bytes.append(domain: name)
    bytes.append(digest)
    return bytes
  }
}
