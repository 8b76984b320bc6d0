import Glibc

/// What keeps a radio silent.
///
/// Source: Linux, Documentation/driver-api/rfkill.rst.
public enum RadioBlock: Sendable, Hashable {
  /// Software: `rfkill unblock` ends it.
  case soft
  /// A switch or key of the machine.
  case hard

  /// What blocks the adapter `number`, as sysfs says; nil where nothing does.
  static func ofAdapter(_ number: UInt16) -> RadioBlock? {
    let folder = "/sys/class/bluetooth/hci\(number)"
    for name in names(in: folder) where name.hasPrefix("rfkill") {
      if isSet("\(folder)/\(name)/hard") { return .hard }
      if isSet("\(folder)/\(name)/soft") { return .soft }
    }
    return nil
  }

  private static func names(in folder: String) -> [String] {
    guard let stream = unsafe opendir(folder) else { return [] }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while let entry = unsafe readdir(stream) {
      names.append(
        unsafe withUnsafeBytes(of: &entry.pointee.d_name) { name in
          unsafe String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
        })
    }
    return names
  }

  /// Whether the file at `path` begins with the digit 1.
  private static func isSet(_ path: String) -> Bool {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    let file = OpenFile(taking: descriptor)
    var digit: UInt8 = 0
    return unsafe read(file.descriptor, &digit, 1) == 1 && digit == UInt8(ascii: "1")
  }
}
