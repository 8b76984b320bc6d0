import Glibc

/// A file that is written piece by piece. It gets its name only when it is complete and on the disk; until then, and after any
/// failure, nothing has that name.
package struct UnfinishedFile: ~Copyable {
  private let path: String
  private let place: FilePath
  private let directory: Descriptor
  private let file: Descriptor
  private let temporaryName: String
  private let operations: FileOperations
  private var isFinished = false

  /// Creates an empty file without a lasting name, mode 0600.
  ///
  /// - Throws: `notFound`, `noPermission`, `isDirectory`, `diskFull`, `other`.
  package init(at path: String, operations: FileOperations = .system) throws(FileError) {
    let place = try FilePath(path)
    let name = Files.temporaryName()
    let directory: Descriptor
    do throws(SystemError) { directory = try Descriptor(opening: place.directory, flags: O_RDONLY | O_DIRECTORY) } catch
    {
      throw FileError(error, at: path)
    }
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
    do throws(SystemError) {
      file = try Descriptor(opening: name, in: directory.number, flags: flags, mode: 0o600)
    } catch { throw FileError(error, at: path) }
    (self.path, self.place, temporaryName, self.operations) = (path, place, name, operations)
    self.directory = directory
  }

  deinit {
    if !isFinished { _ = unsafe unlinkat(directory.number, temporaryName, 0) }
  }

  /// Appends bytes.
  ///
  /// - Throws: `diskFull`, `other`.
  package func append(_ bytes: Span<UInt8>) throws(FileError) {
    do throws(SystemError) { try operations.writeAll(bytes, to: file.number) } catch {
      throw FileError(error, at: path)
    }
  }

  /// Brings the file to the disk and gives it its name, which no file may have yet.
  ///
  /// - Throws: `exists`, `diskFull`, `noPermission` on a file system without hard links, `other`.
  package mutating func finish() throws(FileError) {
    do throws(SystemError) {
      try operations.synchronize(file.number)
      try operations.rename(directory.number, temporaryName, place.name, false)
      isFinished = true
      try operations.synchronize(directory.number)
    } catch { throw FileError(error, at: path) }
  }
}
