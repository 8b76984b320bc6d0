import CHost
import Glibc

extension Files {
  /// Returns the names in a folder, sorted by their bytes, without `.` and `..`.
  ///
  /// - Parameters:
  ///   - path: The folder; a symbolic link is not followed.
  ///   - limit: The maximum number of names.
  /// - Throws: `notFound`, `notDirectory`, `symbolicLink`, `noPermission`; `tooLarge` for more names than `limit`; `other`.
  package static func names(inFolder path: String, limit: Int) throws(FileError) -> [String] {
    do throws(SystemError) {
      let folder = try Descriptor(opening: path, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      return try names(in: folder, limit: limit)
    } catch { throw FileError(kind(of: error, openingFolder: path), at: path) }
  }

  /// Checks that the folder belongs to this user, gives others no access, and is not a symbolic link.
  ///
  /// - Throws: `notFound`, `noPermission`, `notDirectory`, `symbolicLink`, `wrongOwner`, `tooOpen`, `other`.
  package static func requirePrivateFolder(at path: String) throws(FileError) {
    guard !path.utf8.contains(0) else { throw FileError(.notFound, at: path) }
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else { throw FileError(SystemError.last, at: path) }
    switch status.st_mode & S_IFMT {
    case S_IFDIR: break
    case S_IFLNK: throw FileError(.symbolicLink, at: path)
    default: throw FileError(.notDirectory, at: path)
    }
    if let kind = FileRequirements.secret.check(status) { throw FileError(kind, at: path) }
  }

  /// Removes a folder that contains no other folders, with its contents. The removal is durable when this returns.
  ///
  /// - Parameter path: The folder; a symbolic link is not followed.
  /// - Throws: The errors of ``names(inFolder:limit:)``; `isDirectory` if there is a folder in it. Some of its files may then
  ///   already be removed.
  package static func removeFlatFolder(at path: String, operations: FileOperations = .system) throws(FileError) {
    let place = try FilePath(path)
    do throws(SystemError) {
      let parent = try Descriptor(opening: place.directory, flags: O_RDONLY | O_DIRECTORY)
      try removeFiles(ofFolder: place.name, in: parent)
      try retrying { unsafe unlinkat(parent.number, place.name, AT_REMOVEDIR) }
      try operations.synchronize(parent.number)
    } catch { throw FileError(kind(of: error, openingFolder: path), at: path) }
  }

  /// Removes an empty folder. The removal is durable when this returns.
  ///
  /// - Throws: `exists` if something is in it; `notFound`, `notDirectory`, `noPermission`, `other`.
  package static func removeEmptyFolder(at path: String, operations: FileOperations = .system) throws(FileError) {
    let place = try FilePath(FilePath.withoutTrailingSlashes(path))
    do throws(SystemError) {
      let parent = try Descriptor(opening: place.directory, flags: O_RDONLY | O_DIRECTORY)
      try retrying { unsafe unlinkat(parent.number, place.name, AT_REMOVEDIR) }
      try operations.synchronize(parent.number)
    } catch { throw FileError(error, at: path) }
  }

  private static func removeFiles(ofFolder name: String, in parent: borrowing Descriptor) throws(SystemError) {
    let folder = try Descriptor(opening: name, in: parent.number, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    for name in try names(in: folder, limit: 65_536) {
      try retrying { unsafe unlinkat(folder.number, name, 0) }
    }
  }

  /// Renames a folder within its parent folder, in one step: after a power cut it has the old name or the new one.
  ///
  /// If another folder has the new name, the two exchange their names, so neither name is missing at any moment.
  ///
  /// - Parameters:
  ///   - path: The folder, whose contents are already on the disk.
  ///   - name: The new name.
  /// - Returns: Whether the names were exchanged: `path` is then the other folder.
  /// - Throws: `notFound`, `noPermission`, `readOnly`, `diskFull`; `other` with `EINVAL` on a file system that cannot exchange
  ///   names (NFS, for example), after which nothing has changed.
  package static func renameFolder(
    at path: String, to name: String, operations: FileOperations = .system
  ) throws(FileError) -> Bool {
    let place = try FilePath(path)
    do throws(SystemError) {
      let parent = try Descriptor(opening: place.directory, flags: O_RDONLY | O_DIRECTORY)
      let isExchanged = try rename(place.name, to: name, in: parent)
      try operations.synchronize(parent.number)
      return isExchanged
    } catch { throw FileError(error, at: path) }
  }

  private static func rename(
    _ old: String, to new: String, in parent: borrowing Descriptor
  ) throws(SystemError) -> Bool {
    let number = parent.number
    do throws(SystemError) {
      try retrying { unsafe holdfast_exchange_names(number, old, new) }
      return true
    } catch {
      guard error.number == ENOENT else { throw error }
    }
    // The new name was free. If an empty folder has taken it meanwhile, this replaces that folder.
    try retrying { unsafe renameat(number, old, number, new) }
    return false
  }

  private static func names(in folder: borrowing Descriptor, limit: Int) throws(SystemError) -> [String] {
    // `fdopendir` takes over its descriptor.
    let copy = try retrying { fcntl(folder.number, F_DUPFD_CLOEXEC, 0) }
    guard let stream = unsafe fdopendir(copy) else {
      let number = errno
      close(copy)
      throw SystemError(number)
    }
    defer { _ = unsafe closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(stream) else {
        guard errno == 0 else { throw SystemError(errno) }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      }
      // The entry may be shorter than its type, so only the bytes up to the zero are read.
      let name = unsafe entry.pointer(to: \.d_name)!.withMemoryRebound(to: CChar.self, capacity: 1) {
        unsafe String(cString: $0)
      }
      guard name != ".", name != ".." else { continue }
      guard names.count < limit else { throw SystemError(EFBIG) }
      names.append(name)
    }
  }

  /// Returns the kind of an error. `ENOTDIR` also stands for a symbolic link where links are not followed.
  private static func kind(of error: SystemError, openingFolder path: String) -> FileError.Kind {
    guard error.number == ENOTDIR else { return FileError.Kind(error.number) }
    var entry = stat()
    guard unsafe lstat(path, &entry) == 0, entry.st_mode & S_IFMT == S_IFLNK else { return .notDirectory }
    return .symbolicLink
  }
}
