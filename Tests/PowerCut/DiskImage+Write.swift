import Glibc

extension DiskImage {
  /// An image could not be written.
  package struct NotWritten: Error {}

  /// Puts folders of mode 0700 and files of mode 0600 into the empty folder at `folder`.
  package func write(to folder: String) throws {
    for path in folders {
      guard unsafe mkdir(folder + "/" + path, 0o700) == 0 else { throw NotWritten() }
    }
    for (path, bytes) in files.sorted(by: { $0.key < $1.key }) {
      let file = unsafe open(folder + "/" + path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      guard file >= 0 else { throw NotWritten() }
      defer { close(file) }
      guard unsafe Glibc.write(file, bytes, bytes.count) == bytes.count else { throw NotWritten() }
    }
  }
}
