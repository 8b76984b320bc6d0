import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization

/// A secret of 32 random bytes in the app's own storage, created once, that distinguishes this host from every other.
///
/// It is stored outside the prover's state folder, so that a copy of that folder is useless on another host.
package struct HostSecret {
  package let folder: String
  package let name: String

  /// Chooses the path: `${XDG_DATA_HOME or $HOME/.local/share}/holdfast/device.secret`, or the path that `files` gives. The secret of
  /// a group is in `groups/NAME` below that folder.
  ///
  /// Source: XDG Base Directory Specification 0.8: a path that is not absolute is ignored.
  ///
  /// - Parameter group: the group of apps that share the secret; nil for the apps that have chosen none.
  package init(_ files: HostFiles, group: String? = HostSecretPlace.group) throws(HostSecretFault) {
    let below = group.map { "/groups/\($0)" } ?? ""
    if let path = files.deviceSecretPath {
      guard let slash = path.lastIndex(of: "/") else { throw .noLocation }
      folder = String(path[..<slash])
      name = String(path[path.index(after: slash)...])
    } else if let data = Self.absolutePath(in: "XDG_DATA_HOME") {
      folder = data + "/holdfast" + below
      name = "device.secret"
    } else if let home = Self.absolutePath(in: "HOME") {
      folder = home + "/.local/share/holdfast" + below
      name = "device.secret"
    } else {
      throw .noLocation
    }
  }

  /// Reads the secret.
  ///
  /// - Throws: `missing` if it was not created, and another case if file or folder do not meet the conditions.
  package func read() throws(HostSecretFault) -> Secret<32> {
    try read(in: openFolder())
  }

  /// Opens the folder, which must belong to this user and be closed to others.
  package func openFolder() throws(HostSecretFault) -> Descriptor {
    let opened = try openAnyFolder()
    let status = try status(of: opened)
    guard status.st_uid == geteuid(), status.st_mode & 0o077 == 0 else { throw .folderNotPrivate }
    return opened
  }

  private func openAnyFolder() throws(HostSecretFault) -> Descriptor {
    do throws(SystemError) {
      return try Descriptor(opening: folder, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    } catch {
      switch error.number {
      case ENOENT: throw .missing
      case ENOTDIR, ELOOP: throw .folderNotPrivate
      default: throw .system(error.number)
      }
    }
  }

  package func read(in folder: borrowing Descriptor) throws(HostSecretFault) -> Secret<32> {
    let file = try open(in: folder)
    let status = try status(of: file)
    guard status.st_mode & S_IFMT == S_IFREG else { throw .notPlainFile }
    guard status.st_uid == geteuid() else { throw .wrongOwner }
    guard status.st_mode & 0o7777 & ~0o200 == 0o400 else { throw .wrongMode }
    guard status.st_size == 32 else { throw .wrongSize }
    var secret = Secret<32>()
    let count = try secret.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(HostSecretFault) in
      do throws(SystemError) { return try file.read(into: &bytes) } catch { throw .system(error.number) }
    }
    guard count == 32 else { throw .wrongSize }
    return secret
  }

  private func open(in folder: borrowing Descriptor) throws(HostSecretFault) -> Descriptor {
    do throws(SystemError) {
      return try Descriptor(opening: name, in: folder.number, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    } catch {
      switch error.number {
      case ENOENT: throw .missing
      case ELOOP: throw .notPlainFile
      default: throw .system(error.number)
      }
    }
  }

  private func status(of file: borrowing Descriptor) throws(HostSecretFault) -> stat {
    do throws(SystemError) { return try file.status() } catch { throw .system(error.number) }
  }

  private static func absolutePath(in variable: String) -> String? {
    guard let value = unsafe getenv(variable) else { return nil }
    let path = unsafe String(cString: value)
    return path.hasPrefix("/") ? path : nil
  }
}

extension HostSecret {
  /// Reads the secret, and creates it first if there is none.
  ///
  /// It appears completely or not at all, and durably. Two processes that create it at the same time get the same secret. An
  /// existing file is never replaced, even if it is invalid.
  package func readOrCreate() throws(HostSecretFault) -> Secret<32> {
    do throws(HostSecretFault) {
      return try read()
    } catch .missing {
      try makeFolders()
      let folder = try openFolder()
      try create(in: folder)
      return try read(in: folder)
    }
  }

  /// Creates the folder and its parents with access for this user only. The names of new ones are on the disk when this returns.
  private func makeFolders() throws(HostSecretFault) {
    var path = ""
    for piece in folder.split(separator: "/") {
      let above = path + "/"
      path = above + piece
      if unsafe mkdir(path, 0o700) == 0 {
        do throws(SystemError) { try Descriptor(opening: above, flags: O_RDONLY | O_DIRECTORY).synchronize() } catch {
          throw .system(error.number)
        }
      } else if errno != EEXIST {
        throw .system(errno)
      }
    }
  }

  /// Writes a secret under a temporary name and gives it the right name, unless another process did so first.
  private func create(in folder: borrowing Descriptor) throws(HostSecretFault) {
    let folderDescriptor = folder.number
    let temporary = "\(name).\(getpid()).\(UInt64.random(in: 0 ... .max))"
    do throws(SystemError) {
      let file = try Descriptor(
        opening: temporary, in: folder.number, flags: O_WRONLY | O_NOFOLLOW | O_CREAT | O_EXCL, mode: 0o600)
      try fill(file)
      let linked = unsafe linkat(folderDescriptor, temporary, folderDescriptor, name, 0)
      guard linked == 0 || errno == EEXIST else { throw SystemError.last }
      _ = unsafe unlinkat(folderDescriptor, temporary, 0)
      try folder.synchronize()
    } catch {
      _ = unsafe unlinkat(folderDescriptor, temporary, 0)
      throw .system(error.number)
    }
  }

  private func fill(_ file: borrowing Descriptor) throws(SystemError) {
    var random = SystemRandom()
    let secret: Secret<32>
    do throws(RandomFailure) { secret = try random.secret() } catch { throw SystemError(EAGAIN) }
    try secret.withBytes { (bytes: Span<UInt8>) throws(SystemError) in try file.write(bytes) }
    try file.synchronize()
  }
}

/// The location of the device secret in the app's own storage.
public enum HostSecretPlace {
  /// The path of the device secret; nil if the environment names no storage.
  public static var path: String? {
    guard let secret = try? HostSecret(HostFiles()) else { return nil }
    return "\(secret.folder)/\(secret.name)"
  }

  private static let chosen = Mutex(HostSecretChoice())

  /// The group that this process has chosen; nil if it has not.
  public static var group: String? { chosen.withLock { $0.group } }

  /// Gives this process the secret of a group of apps, in place of the one that all apps of the user share. Call it at the start,
  /// before anything else of Holdfast, and always with the same name.
  ///
  /// With another secret, an app has another device measurement, another id at the attestation service and other keys for its vaults,
  /// sealed files and posture statements, so that nobody can tell that two groups are on the same host, and what one has stored is of
  /// no use to another. Apps of one maker that use the same name share all of that. Enrolments and vaults that were made with another
  /// secret cannot be used.
  ///
  /// This separates apps of the same user from each other's mistakes, not from each other's malice: each can read all files of the
  /// user.
  ///
  /// - Parameter name: 1 to 64 letters, digits, dots, hyphens and underscores; the first is a letter or digit. A reverse domain name,
  ///   such as `com.example.locks`, belongs to nobody else.
  /// - Returns: whether the group counts from now on; false for another name, or if this process has chosen another group before.
  public static func choose(group name: String) -> Bool { chosen.withLock { $0.choose(name) } }

  /// Overwrites and removes the secret, for example when the app is uninstalled. The next enrolment makes another one, and with it
  /// another device measurement and another id at the attestation service. The removal is durable when this returns.
  ///
  /// - Returns: whether there was a secret.
  /// - Throws: the error of the file; `notFound` if the environment names no storage.
  @discardableResult
  public static func remove() throws(FileError) -> Bool {
    guard let path else { throw FileError(.notFound, at: "device.secret") }
    do throws(FileError) { try Files.eraseFile(at: path) } catch {
      guard error.kind == .notFound else { throw error }
      return false
    }
    return true
  }
}

/// The group of apps whose secret a process uses. It is chosen once.
package struct HostSecretChoice: Sendable {
  package private(set) var group: String?

  /// Creates a choice that was not made yet.
  package init() {}

  /// Chooses a group, and returns whether it is the chosen one now.
  package mutating func choose(_ name: String) -> Bool {
    guard Self.isName(name) else { return false }
    if let group { return group.utf8.elementsEqual(name.utf8) }
    group = name
    return true
  }

  private static func isName(_ name: String) -> Bool {
    func isAlphanumeric(_ byte: UInt8) -> Bool {
      (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
    }
    guard let first = name.utf8.first, isAlphanumeric(first) else { return false }
    return name.utf8.count <= 64 && name.utf8.allSatisfy { isAlphanumeric($0) || [0x2d, 0x2e, 0x5f].contains($0) }
  }
}
