import CHost
import Glibc
import HoldfastLinux

/// The state of this process's code, at a moment when nobody but root could change its bytes. While the state is the same, so are the
/// bytes.
///
/// It exists only if every condition holds; a source that cannot be read is a condition that does not hold. The argument is in
/// docs/measurement.md, "Bytes that are known unchanged".
struct UnchangingCode: Equatable {
  private let mappings: [MemoryMapping]
  /// The files from which code is mapped, in the order of the segments.
  private let files: [MappedFile]

  /// Examines the code; nil if a condition does not hold.
  init?(_ code: LiveCode, _ host: HostFiles, chunk: inout [UInt8]) {
    guard host.isLive, code.map.mappings.allSatisfy(\.isOrdinary) else { return nil }
    mappings = code.map.codeMappings
    do {
      guard try Self.hasNoPrivatePage(code, host, chunk: &chunk), try Self.isInInitialUserNamespace(host) else {
        return nil
      }
      var folders = try Self.isUnprivileged(host) ? RootsFolders() : nil
      var files: [MappedFile] = []
      guard code.segments.first?.path == code.executable else { return nil }
      for (index, segment) in code.segments.enumerated()
      where index == 0 || code.segments[index - 1].path != segment.path {
        guard let file = code.files.file(of: segment), try file.isUnchanging(as: segment, code, host, &folders) else {
          return nil
        }
        files.append(file)
      }
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

extension MappedFile {
  /// Whether nobody but root can change the file, from which a segment is mapped, while this process runs code from it.
  ///
  /// - Parameter folders: the examined folders; nil for a process with privileges, to which permissions mean nothing.
  fileprivate func isUnchanging(
    as segment: ExecutableSegment, _ code: LiveCode, _ host: HostFiles, _ folders: inout RootsFolders?
  ) throws -> Bool {
    let isExecutable = segment.path == code.executable
    guard let state, state.hasOrdinaryMount, state.mode & S_IFMT == S_IFREG else { return false }
    guard !segment.isDeleted, identity == segment.identity else { return false }
    if isExecutable, try Self.runningIdentity(host) != identity { return false }
    if verity != nil || state.isOnlyRoots(at: segment.path, &folders) { return true }
    return isExecutable && Self.kernelRefusesWriting()
  }

  private static func runningIdentity(_ host: HostFiles) throws -> FileIdentity {
    let running = try host.open("/proc/self/exe", as: .executable)
    var status = holdfast_code_file()
    try retrying { unsafe holdfast_describe_code_file(running.number, &status) }
    return FileIdentity(status)
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

extension CodeFileState {
  /// Whether only root can write to the file and to all folders of its path, and the file has not changed for two seconds.
  ///
  /// Change times have the granularity of the kernel's tick: a change right after the hashing could otherwise have the same time.
  fileprivate func isOnlyRoots(at path: [UInt8], _ folders: inout RootsFolders?) -> Bool {
    guard changeSeconds > 0, holdfast_file_time() - changeSeconds > 2 else { return false }
    guard RootsFolders.isRoots(mode: mode, owner: owner, at: path) else { return false }
    return folders?.contain(path[...]) ?? false
  }
}

/// Folders that only root can change. Each is examined once.
private struct RootsFolders {
  private var known: [(path: ArraySlice<UInt8>, isRoots: Bool)] = []

  /// Returns whether every folder on the way to an absolute path is root's.
  mutating func contain(_ path: ArraySlice<UInt8>) -> Bool {
    guard path.first == 0x2f, let slash = path.lastIndex(of: 0x2f) else { return false }
    let folder = path[..<max(slash, 1)]
    if let examined = known.first(where: { $0.path == folder }) { return examined.isRoots }
    let isRoots = Self.isRootsFolder(Array(folder)) && (folder.count == 1 || contain(folder))
    known.append((folder, isRoots))
    return isRoots
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

extension [UInt8] {
  /// The path as a C string.
  fileprivate var terminated: [CChar] { map { CChar(bitPattern: $0) } + [0] }
}
