import CHost
import Glibc
import HoldfastLinux

/// The state of this process's code, at a moment when nobody but root could change its bytes. While the state is the same, so are the
/// bytes.
///
/// It exists only if every condition holds; a source that cannot be read is a condition that does not hold. The argument is in
/// docs/measurement.md, "Bytes that are known unchanged".
struct UnchangingCode: Equatable {
  /// Every mapping of a file, and every executable one, in the order of the kernel's map. Memory without a file that cannot be executed
  /// is left out: no code runs from it, and every allocation changes it.
  private let mappings: [MemoryMapping]
  /// The state of each file from which code is mapped, by its path.
  private let files: [[UInt8]: CodeFile]

  /// Examines the code; nil if a condition does not hold.
  init?(_ code: LiveCode, _ host: HostFiles, chunk: inout [UInt8]) {
    guard host.isLive, code.map.mappings.allSatisfy(\.isOrdinary) else { return nil }
    mappings = code.map.mappings.filter { $0.isFileBacked || $0.isExecutable }
    do {
      guard try Self.hasNoPrivatePage(code, host, chunk: &chunk), try Self.isInInitialUserNamespace(host) else {
        return nil
      }
      var folders = try Self.isUnprivileged(host) ? RootsFolders() : nil
      var files: [[UInt8]: CodeFile] = [:]
      for segment in code.segments where files[segment.path] == nil {
        guard let file = try CodeFile(of: segment, code, host, &folders) else { return nil }
        files[segment.path] = file
      }
      guard files[code.executable] != nil else { return nil }
      self.files = files
    } catch { return nil }
  }

  /// A private page is a copy of the file's, which something has written.
  private static func hasNoPrivatePage(
    _ code: LiveCode, _ host: HostFiles, chunk: inout [UInt8]
  ) throws(MeasurementError) -> Bool {
    let pages = try PageMap(host)
    for segment in code.segments {
      guard try pages.isFileBacked(segment.addresses, chunk: &chunk) else { return false }
    }
    return true
  }

  /// In another user namespace, "root" can be any user, who can mount what they like.
  ///
  /// Source: user_namespaces(7), "User and group ID mappings".
  private static func isInInitialUserNamespace(_ host: HostFiles) throws(MeasurementError) -> Bool {
    let map = try host.contents(of: "/proc/self/uid_map", as: .threads)
    let fields = map[...].trimmed.split { $0 == 0x20 || $0 == 0x0a }.map(\.decimal)
    return fields == [0, 0, 4_294_967_295]
  }

  /// Whether this process has neither an id of root's nor any capability.
  ///
  /// Source: proc_pid_status(5): `Uid`, with the real, effective, saved and file system ids; `CapPrm`, `CapEff`.
  private static func isUnprivileged(_ host: HostFiles) throws(MeasurementError) -> Bool {
    var found: Set<String> = []
    for line in try host.contents(of: "/proc/self/status", as: .threads).lines {
      var value = line
      let label = value.take(until: 0x3a)
      if label.equals("Uid") {
        let ids = value.trimmed.split(separator: 0x09).map(\.decimal)
        guard ids.count == 4, ids.allSatisfy({ $0 != nil && $0 != 0 }) else { return false }
        found.insert("Uid")
      }
      if label.equals("CapPrm") || label.equals("CapEff") {
        guard value.trimmed.hexadecimal == 0 else { return false }
        found.insert(String(decoding: label, as: UTF8.self))
      }
    }
    return found.count == 3
  }
}

extension MemoryMapping {
  /// Whether the mapping can be part of code that does not change: no file is deleted, and nothing is both writable and executable.
  fileprivate var isOrdinary: Bool { !(isExecutable && (isDeleted || isWritable)) }
}

/// The state of a file that cannot be changed while this process runs code from it, except by root.
private struct CodeFile: Equatable {
  private let identity: FileIdentity
  private let byteCount: UInt64
  private let changed: [Int64]
  private let mount: UInt64
  private let verity: [UInt8]?

  /// Examines the file of a segment; nil if a condition does not hold for it.
  ///
  /// - Parameter folders: the examined folders; nil for a process with privileges, to which permissions mean nothing.
  init?(
    of segment: ExecutableSegment, _ code: LiveCode, _ host: HostFiles, _ folders: inout RootsFolders?
  ) throws {
    let isExecutable = segment.path == code.executable
    let file = try Descriptor(opening: segment.path, flags: O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)
    try retrying { holdfast_write_back(file.number) }
    let status = try Self.describe(file)
    if isExecutable {
      let running = try host.open("/proc/self/exe", as: .executable)
      guard try FileIdentity(Self.describe(running)) == segment.identity else { return nil }
    }
    identity = FileIdentity(status)
    byteCount = status.size
    changed = [status.change_seconds, Int64(status.change_nanoseconds)]
    mount = status.mount
    verity = code.files.verity(of: segment)
    guard !segment.isDeleted, identity == segment.identity, Self.isOnKernelsOwnDisk(status) else { return nil }
    if verity != nil || Self.isOnlyRoots(status, at: segment.path, &folders) { return }
    guard isExecutable, Self.kernelRefusesWriting() else { return nil }
  }

  private static func describe(_ file: borrowing Descriptor) throws(SystemError) -> holdfast_code_file {
    var status = holdfast_code_file()
    try retrying { unsafe holdfast_describe_code_file(file.number, &status) }
    return status
  }

  /// Whether the file is on ext4, XFS or F2FS, in a mount that obeys set-user-ID bits. What users mount themselves, such as an image
  /// of theirs by udisks, has `nosuid`.
  ///
  /// Source: Linux, include/uapi/linux/magic.h.
  private static func isOnKernelsOwnDisk(_ status: holdfast_code_file) -> Bool {
    [0xef53, 0x5846_5342, 0xf2f5_2010].contains(status.file_system) && status.has_nosuid == 0
      && status.mode & S_IFMT == S_IFREG
  }

  /// Whether only root can write to the file and to all folders of its path, and the file has not changed for two seconds.
  ///
  /// Change times have the granularity of the kernel's tick: a change right after the hashing could otherwise have the same time.
  private static func isOnlyRoots(
    _ status: holdfast_code_file, at path: [UInt8], _ folders: inout RootsFolders?
  ) -> Bool {
    let now = holdfast_file_time()
    guard status.change_seconds > 0, now - status.change_seconds > 2 else { return false }
    guard RootsFolders.isRoots(mode: status.mode, owner: status.owner, at: path) else { return false }
    return folders?.contain(path[...]) ?? false
  }

  /// Whether the kernel refuses to open the running executable for writing because it runs. Linux 6.11 and 6.12 allow it, and a user
  /// who may not write gets `EACCES`, which tells nothing. Opening without `O_TRUNC` changes neither the file nor its times.
  ///
  /// Source: open(2), `ETXTBSY`.
  private static func kernelRefusesWriting() -> Bool {
    do throws(SystemError) {
      _ = try Descriptor(opening: "/proc/self/exe", flags: O_WRONLY | O_NOCTTY | O_NONBLOCK)
      return false
    } catch { return error.number == ETXTBSY }
  }
}

/// Folders that only root can change. Each is examined once.
private struct RootsFolders {
  private var known: [ArraySlice<UInt8>: Bool] = [:]

  /// Returns whether every folder on the way to an absolute path is root's.
  mutating func contain(_ path: ArraySlice<UInt8>) -> Bool {
    guard path.first == 0x2f, let slash = path.lastIndex(of: 0x2f) else { return false }
    let folder = path[..<max(slash, 1)]
    if let answer = known[folder] { return answer }
    let answer = Self.isRootsFolder(Array(folder)) && (folder.count == 1 || contain(folder))
    known[folder] = answer
    return answer
  }

  private static func isRootsFolder(_ path: [UInt8]) -> Bool {
    var status = stat()
    guard unsafe lstat(path.terminated, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return false }
    return isRoots(mode: status.st_mode, owner: status.st_uid, at: path)
  }

  /// Whether the file is root's, and nobody else may write to it. The group's bits also bound what an access control list grants.
  ///
  /// Source: acl(5).
  static func isRoots(mode: UInt32, owner: UInt32, at path: [UInt8]) -> Bool {
    guard owner == 0, mode & 0o022 == 0 else { return false }
    return unsafe holdfast_can_write(path.terminated) == 0
  }
}

extension FileIdentity {
  fileprivate init(_ status: holdfast_code_file) {
    self.init(
      deviceMajor: UInt64(status.device_major), deviceMinor: UInt64(status.device_minor), inode: status.inode)
  }
}

extension [UInt8] {
  /// The path as a C string.
  fileprivate var terminated: [CChar] { map { CChar(bitPattern: $0) } + [0] }
}
