import CHost
import Glibc
import HoldfastCore
import HoldfastLinux

/// The identity of a file: its block device and its inode.
package struct FileIdentity: Equatable, Sendable {
  package var deviceMajor: UInt64
  package var deviceMinor: UInt64
  package var inode: UInt64

  package init(deviceMajor: UInt64, deviceMinor: UInt64, inode: UInt64) {
    self.deviceMajor = deviceMajor
    self.deviceMinor = deviceMinor
    self.inode = inode
  }

  /// Reads the identity from the result of stat(2). Source: makedev(3).
  package init(_ status: stat) {
    let device = UInt64(status.st_dev)
    self.init(
      deviceMajor: (device >> 32) & 0xffff_f000 | (device >> 8) & 0xfff,
      deviceMinor: (device >> 12) & 0xffff_ff00 | device & 0xff, inode: UInt64(status.st_ino))
  }

  init(_ status: holdfast_code_file) {
    self.init(
      deviceMajor: UInt64(status.device_major), deviceMinor: UInt64(status.device_minor), inode: status.inode)
  }
}

/// The file that is now at the path of a mapping.
public struct MappedFile: Equatable, Sendable {
  package var identity: FileIdentity
  /// The algorithm's name, a zero byte and the fs-verity digest; nil if the file is not a plain file, or has no such digest.
  package var verity: [UInt8]?
  /// The state by which a file is known to be unchanged; nil if the path ends with a link, or if the state was not asked for.
  var state: CodeFileState?

  package init(identity: FileIdentity, verity: [UInt8]? = nil) {
    self.identity = identity
    self.verity = verity
  }

  /// Looks at `path`; nil when there is nothing.
  package init?(at path: [UInt8]) throws(SystemError) {
    var mounts: Mounts?
    try self.init(at: path, &mounts)
  }

  /// Looks at `path`, and at the state of the file if there are mounts to look it up in; nil when there is nothing.
  init?(at path: [UInt8], _ mounts: inout Mounts?) throws(SystemError) {
    do throws(SystemError) {
      var isLinked = false
      let file = try Self.open(path, isLinked: &isLinked)
      // Writes through mappings show in the change time only if the pages were clean before.
      let isWrittenBack = mounts != nil && (try? retrying { holdfast_write_back(file.number) }) != nil
      var status = holdfast_code_file()
      try retrying { unsafe holdfast_describe_code_file(file.number, &status) }
      identity = FileIdentity(status)
      verity =
        status.mode & S_IFMT == S_IFREG && status.may_have_verity != 0 ? try FileVerity.bytes(of: file) : nil
      state = isWrittenBack && !isLinked ? mounts?.state(of: file, status) : nil
    } catch {
      guard error.isAbsence else { throw error }
      return nil
    }
  }

  /// Opens the file at a path, and notes whether a link at the end of the path leads to it.
  private static func open(_ path: [UInt8], isLinked: inout Bool) throws(SystemError) -> Descriptor {
    let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY
    do throws(SystemError) { return try Descriptor(opening: path, flags: flags | O_NOFOLLOW) } catch {
      guard error.number == ELOOP else { throw error }
      isLinked = true
      return try Descriptor(opening: path, flags: flags)
    }
  }
}

/// The files from which code is mapped, as they are on disk now.
struct CodeFiles {
  private var files: [[UInt8]: MappedFile] = [:]

  /// Examines the path of each of these segments once; those with the same path are next to each other.
  ///
  /// - Parameter withState: whether the state by which a file is known to be unchanged is needed.
  init(of segments: [ExecutableSegment], _ host: HostFiles, withState: Bool) throws(MeasurementError) {
    var mounts = withState ? Mounts() : nil
    for (index, segment) in segments.enumerated() where index == 0 || segments[index - 1].path != segment.path {
      files[segment.path] = try host.mappedFile(at: segment.path, &mounts)
    }
  }

  /// The file at the path of a segment; nil if there is none.
  func file(of segment: ExecutableSegment) -> MappedFile? { files[segment.path] }

  /// Returns whether the code of a segment is no longer that of its path: the file was removed, or another one replaced it.
  ///
  /// Only the inode is compared, because on Btrfs and OverlayFS the map names another block device than the file does.
  func isReplaced(_ segment: ExecutableSegment) -> Bool {
    segment.isDeleted || files[segment.path]?.identity.inode != segment.identity.inode
  }

  /// Returns the fs-verity bytes of the file from which a segment is mapped; nil if the file has none, or if the path may lead to
  /// another file than the mapped one.
  func verity(of segment: ExecutableSegment) -> [UInt8]? {
    guard !segment.isDeleted, let file = files[segment.path], file.identity == segment.identity else { return nil }
    return file.verity
  }
}

/// The fs-verity digest of a file, as the kernel reports it.
///
/// Source: Linux, Documentation/filesystems/fsverity.rst.
package enum FileVerity {
  /// The ioctl `FS_IOC_MEASURE_VERITY`, `_IOWR('f', 134, struct fsverity_digest)`.
  private static let measureVerity: UInt = 0xc004_6686

  /// The algorithm's name, a zero byte and the fs-verity digest; nil for a file or a file system without.
  package static func bytes(of file: borrowing Descriptor) throws(SystemError) -> [UInt8]? {
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

  /// Returns whether the kernel itself verifies the file and answers: on ext4, Btrfs and F2FS. On a FUSE file system, the answer
  /// is that of a program, which any user can run.
  ///
  /// Source: Linux, include/uapi/linux/magic.h.
  package static func isKernels(fileSystem type: UInt64) -> Bool {
    [0xef53, 0x9123_683e, 0xf2f5_2010].contains(type)
  }

  /// The same bytes, from what the kernel answered: algorithm 1 is SHA-256, 2 is SHA-512.
  package static func bytes(algorithm: UInt16, digest: Span<UInt8>) throws(SystemError) -> [UInt8] {
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
