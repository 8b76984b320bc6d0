import CHost
import Glibc
import HoldfastLinux

/// The state of a file at the path of mapped code, which is the same for as long as nobody changes or replaces the file.
///
/// Source: statx(2), fstatfs(2).
struct CodeFileState: Equatable, Sendable {
  let byteCount: UInt64
  let changeSeconds: Int64
  let changeNanoseconds: UInt32
  let mode: UInt32
  let owner: UInt32
  let mount: UInt64
  /// Whether the file's mount is one of ext4, XFS or F2FS that obeys set-user-ID bits.
  let hasOrdinaryMount: Bool
}

/// The mounts of the files that are examined together. Only root can change them meanwhile, so each is looked at once.
struct Mounts {
  private var known: [(id: UInt64, isOrdinary: Bool)] = []

  /// Returns the state of an open file; nil if the kernel does not tell its mount.
  mutating func state(of file: borrowing Descriptor, _ status: holdfast_code_file) -> CodeFileState? {
    guard status.mount != 0 else { return nil }
    return CodeFileState(
      byteCount: status.size, changeSeconds: status.change_seconds, changeNanoseconds: status.change_nanoseconds,
      mode: status.mode, owner: status.owner, mount: status.mount,
      hasOrdinaryMount: isOrdinary(status.mount, of: file))
  }

  /// Returns whether the mount of an open file is one of ext4, XFS or F2FS that obeys set-user-ID bits. Mounts that users make
  /// themselves, such as those by udisks, have `nosuid`.
  ///
  /// Source: Linux, include/uapi/linux/magic.h.
  private mutating func isOrdinary(_ id: UInt64, of file: borrowing Descriptor) -> Bool {
    if let mount = known.first(where: { $0.id == id }) { return mount.isOrdinary }
    var mount = holdfast_mount()
    guard unsafe holdfast_describe_mount(file.number, &mount) == 0 else { return false }
    let isOrdinary = [0xef53, 0x5846_5342, 0xf2f5_2010].contains(mount.file_system) && mount.has_nosuid == 0
    known.append((id, isOrdinary))
    return isOrdinary
  }
}
