import Glibc
import HoldfastCore

/// 32 random bytes, made once in the app's own storage, that tell this device from every other.
///
/// They lie apart from the prover's state folder, so that a copy of that folder is of no use elsewhere.
struct DeviceSecret {
  let folder: String
  let name: String

  /// `${XDG_DATA_HOME or $HOME/.local/share}/holdfast/device.secret`, or where `files` says.
  ///
  /// Source: XDG Base Directory Specification 0.8: a path that is not absolute is ignored.
  init(_ files: HostFiles) throws(DeviceSecretFault) {
    if let path = files.deviceSecretPath {
      guard let slash = path.lastIndex(of: "/") else { throw .noLocation }
      folder = String(path[..<slash])
      name = String(path[path.index(after: slash)...])
    } else if let data = Self.absolutePath(in: "XDG_DATA_HOME") {
      folder = data + "/holdfast"
      name = "device.secret"
    } else if let home = Self.absolutePath(in: "HOME") {
      folder = home + "/.local/share/holdfast"
      name = "device.secret"
    } else {
      throw .noLocation
    }
  }

  /// Reads the secret.
  ///
  /// - Throws: `missing` when it was not made, and another case when file or folder are not as they must be.
  func read() throws(DeviceSecretFault) -> Secret<32> {
    try read(in: openFolder())
  }

  /// Opens the folder, which must be this user's alone.
  func openFolder() throws(DeviceSecretFault) -> OpenFile {
    let opened = try openAnyFolder()
    let status = try status(of: opened)
    guard status.st_uid == geteuid(), status.st_mode & 0o077 == 0 else { throw .folderNotPrivate }
    return opened
  }

  private func openAnyFolder() throws(DeviceSecretFault) -> OpenFile {
    do throws(SystemFault) {
      return try OpenFile(folder, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    } catch {
      switch error.code {
      case ENOENT: throw .missing
      case ENOTDIR, ELOOP: throw .folderNotPrivate
      default: throw .system(error.code)
      }
    }
  }

  func read(in folder: borrowing OpenFile) throws(DeviceSecretFault) -> Secret<32> {
    let file = try open(in: folder)
    let status = try status(of: file)
    guard status.st_mode & S_IFMT == S_IFREG else { throw .notPlainFile }
    guard status.st_uid == geteuid() else { throw .wrongOwner }
    guard status.st_mode & 0o7777 & ~0o200 == 0o400 else { throw .wrongMode }
    guard status.st_size == 32 else { throw .wrongSize }
    var secret = Secret<32>()
    let count = try secret.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(DeviceSecretFault) in
      do throws(SystemFault) { return try file.read(into: &bytes) } catch { throw .system(error.code) }
    }
    guard count == 32 else { throw .wrongSize }
    return secret
  }

  private func open(in folder: borrowing OpenFile) throws(DeviceSecretFault) -> OpenFile {
    do throws(SystemFault) {
      return try OpenFile(name, in: folder, flags: O_RDONLY | O_NONBLOCK | O_NOCTTY)
    } catch {
      switch error.code {
      case ENOENT: throw .missing
      case ELOOP: throw .notPlainFile
      default: throw .system(error.code)
      }
    }
  }

  private func status(of file: borrowing OpenFile) throws(DeviceSecretFault) -> stat {
    do throws(SystemFault) { return try file.status() } catch { throw .system(error.code) }
  }

  private static func absolutePath(in variable: String) -> String? {
    guard let value = unsafe getenv(variable) else { return nil }
    let path = unsafe String(cString: value)
    return path.hasPrefix("/") ? path : nil
  }
}
