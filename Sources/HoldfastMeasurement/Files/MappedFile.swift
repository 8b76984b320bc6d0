import Glibc

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
  init?(at path: [UInt8]) throws(SystemFault) {
    do throws(SystemFault) {
      let file = try OpenFile(path, flags: O_RDONLY | O_NONBLOCK | O_NOCTTY)
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
