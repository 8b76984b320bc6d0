import Glibc

/// Files and folders of the local user: careful reads, atomic writes, private folders.
public enum Files {
  /// Makes a folder of mode 0700, or checks the one that is there; its name is on the disk when this returns.
  ///
  /// - Parameter path: The folder; the one above it must exist.
  /// - Returns: True where the folder is new.
  /// - Throws: `symbolicLink`, `notDirectory`, `wrongOwner` or `tooOpen` where something is there that is not a
  ///   private folder of this user; `notFound`, `noPermission`, `diskFull`, `other`.
  @discardableResult
  public static func createPrivateDirectory(
    at path: String, operations: FileOperations = .system
  ) throws(FileError) -> Bool {
    let place = try FilePath(FilePath.withoutTrailingSlashes(path))
    let status: stat
    do {
      let parent = try Descriptor(opening: place.directory, flags: O_RDONLY | O_DIRECTORY)
      let isNew = try makeDirectory(place.name, in: parent)
      // One that is there too: whoever made it may have been stopped before this.
      try operations.synchronize(parent.number)
      if isNew { return true }
      let directory = try Descriptor(opening: place.name, in: parent.number, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      status = try directory.status()
    } catch {
      throw FileError(error, at: path)
    }
    if let fault = FileRequirements.secret.check(status) { throw FileError(fault, at: path) }
    return false
  }

  /// Makes a folder; false where the name is taken, `ELOOP` where a symbolic link has it.
  private static func makeDirectory(_ name: String, in parent: borrowing Descriptor) throws(SystemError) -> Bool {
    if unsafe mkdirat(parent.number, name, 0o700) == 0 { return true }
    guard errno == EEXIST else { throw SystemError(errno) }
    // Opening alone would not tell a symbolic link from a file.
    var entry = stat()
    try retrying { unsafe fstatat(parent.number, name, &entry, AT_SYMLINK_NOFOLLOW) }
    if entry.st_mode & S_IFMT == S_IFLNK { throw SystemError(ELOOP) }
    return false
  }

  /// Removes a file, for good also after a power cut.
  ///
  /// - Parameter path: The file; a symbolic link is removed itself.
  /// - Throws: `notFound`, `isDirectory`, `noPermission`, `other`.
  public static func removeFile(at path: String, operations: FileOperations = .system) throws(FileError) {
    let place = try FilePath(path)
    do {
      let directory = try Descriptor(opening: place.directory, flags: O_RDONLY | O_DIRECTORY)
      try retrying { unsafe unlinkat(directory.number, place.name, 0) }
      try operations.synchronize(directory.number)
    } catch {
      throw FileError(error, at: path)
    }
  }
}
