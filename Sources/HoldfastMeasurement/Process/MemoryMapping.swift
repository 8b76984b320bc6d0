/// One line of the kernel's memory map.
///
/// Source: proc_pid_maps(5).
struct MemoryMapping: Equatable {
  var addresses: Range<UInt64>
  var isWritable: Bool
  var isExecutable: Bool
  var fileOffset: UInt64
  var identity: FileIdentity
  /// The file, without ` (deleted)`; or what the kernel calls a mapping without file; or nothing.
  var name: [UInt8]
  /// Whether the kernel says that the file is gone.
  var isDeleted: Bool

  /// Whether a file is behind it, be it one that was deleted.
  var isFileBacked: Bool { identity.inode != 0 || name.first == 0x2f }

  /// Whether it is code that the kernel gives to every process. No file and no anonymous mapping can take these names.
  var isKernelCode: Bool { !isFileBacked && (name[...].equals("[vdso]") || name[...].equals("[vsyscall]")) }

  /// Reads `start-end perms offset device inode name`; nil when the line is something else.
  init?(parsing line: ArraySlice<UInt8>) {
    var rest = line
    guard let start = rest.take(until: 0x2d).hexadecimal, let end = rest.take(until: 0x20).hexadecimal, start < end
    else { return nil }
    let permissions = Array(rest.take(until: 0x20))
    guard permissions.count == 4, let offset = rest.take(until: 0x20).hexadecimal else { return nil }
    guard let major = rest.take(until: 0x3a).hexadecimal, let minor = rest.take(until: 0x20).hexadecimal,
      let inode = rest.take(until: 0x20).decimal
    else { return nil }
    addresses = start..<end
    isWritable = permissions[1] == 0x77
    isExecutable = permissions[2] == 0x78
    fileOffset = offset
    identity = FileIdentity(deviceMajor: major, deviceMinor: minor, inode: inode)
    let whole = rest.drop { $0 == 0x20 }
    name = Array(Self.withoutDeleted(whole))
    isDeleted = name.count != whole.count
  }

  /// Leaves out what the kernel appends to the name of a file that is gone.
  static func withoutDeleted(_ name: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    name.suffix(10).equals(" (deleted)") ? name.dropLast(10) : name
  }
}
