import Glibc

/// An open file descriptor, closed exactly once, when the last owner lets it go.
///
/// It does not block and is closed on exec: whoever opens it says so.
final class OpenFile: Sendable {
  let descriptor: CInt

  /// Takes over `descriptor`, which must be open and owned by nobody else.
  init(taking descriptor: CInt) {
    self.descriptor = descriptor
  }

  deinit {
    // close(2) frees the number even when it answers EINTR, so it is never called twice.
    close(descriptor)
  }

  /// Identity of what a path names, so that a file put there by somebody else is left alone.
  struct Identity: Equatable {
    let device: dev_t
    let inode: ino_t
    let mode: mode_t

    var isSocket: Bool {
      mode & S_IFMT == S_IFSOCK
    }

    /// Looks at `path` itself, not at what a symbolic link there points to; nil where nothing can be seen.
    init?(path: String) {
      var status = stat()
      guard unsafe lstat(path, &status) == 0 else { return nil }
      device = status.st_dev
      inode = status.st_ino
      mode = status.st_mode
    }
  }
}
