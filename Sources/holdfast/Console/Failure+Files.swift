import Glibc
import HoldfastStorage
import HoldfastText

extension Failure {
  /// A file of the user's, or of a state folder, could not be used.
  init(_ error: FileError, hint: String? = nil) {
    let path = error.path
    switch error.kind {
    case .notFound:
      self.init(.malformed, "\(path) is not there", hint: hint ?? "is the name right, and is it in this folder?")
    case .noPermission:
      self.init(.noPermission, "no permission for \(path)", hint: "run as the user whom it belongs to")
    case .readOnly:
      self.init(.fault, "\(path) is on a file system that is read-only", hint: hint ?? Self.whenReadOnly)
    case .isDirectory:
      self.init(.malformed, "\(path) is a folder, not a file", hint: hint)
    case .notDirectory:
      self.init(.malformed, "\(path) is not a folder", hint: hint)
    case .anotherKind(let kind):
      self.init(
        .malformed, "\(path) is \(kind.text)'s folder, which this verb does not take", hint: "take another folder")
    case .notRegular:
      self.init(.malformed, "\(path) is not a regular file", hint: hint)
    case .symbolicLink:
      self.init(.malformed, "\(path) is a symbolic link, and links are not followed here", hint: hint)
    case .tooLarge:
      self.init(.malformed, "\(path) is too large", hint: hint)
    case .tooOpen(let mode):
      self.init(
        .noPermission, "\(path) has mode \(octal(mode)), and others could use it", hint: "chmod go= \(path.shellWord)")
    case .wrongOwner:
      self.init(.noPermission, "\(path) belongs to another user", hint: "run as the user whom it belongs to")
    case .exists:
      self.init(.malformed, "\(path) exists already, and nothing is overwritten", hint: hint)
    case .locked:
      self.init(.unavailable, "\(path) is in use by another process", hint: hint)
    case .diskFull:
      self.init(.fault, "the disk is full, \(path) was not written", hint: "free some space and run it again")
    case .other(ENAMETOOLONG):
      self.init(.malformed, "\(path): the name is too long", hint: hint)
    case .other(let number):
      self.init(.fault, "\(path): system error \(number)", hint: hint)
    }
  }
}

extension Failure {
  /// A file or folder could not be made: the one above it is at fault, or what is there already.
  init(making error: FileError) {
    switch error.kind {
    case .notFound:
      self.init(
        .malformed, "the folder in which \(error.path) was to be made is not there",
        hint: "make it first, or is the name wrong?")
    case .notDirectory, .symbolicLink, .notRegular, .isDirectory:
      self.init(error, hint: "give another name")
    default: self.init(error)
    }
  }

  /// Standard output did not take the result; nil for `errno` 0.
  init?(lostResult number: Int32) {
    switch number {
    case 0: return nil
    case EPIPE: self.init(.fault, "the reader of standard output went away before the end")
    case ENOSPC, EDQUOT:
      self.init(
        .fault, "the disk is full, standard output was not written", hint: "free some space and show the result again")
    case EBADF:
      self.init(.fault, "standard output is closed, so that the result is lost", hint: "to be rid of it: >/dev/null")
    default: self.init(.fault, "standard output could not be written: system error \(number)")
    }
  }
}

extension Failure {
  static let whenReadOnly = "make it writable, or take another place"
}

extension FolderKind {
  /// The kind, with its article.
  fileprivate var text: String {
    switch self {
    case .device: "a device"
    case .service: "a service"
    case .prover: "a prover"
    case .authenticator: "an authenticator"
    }
  }
}

private func octal(_ mode: UInt32) -> String { "0" + String(mode, radix: 8) }
