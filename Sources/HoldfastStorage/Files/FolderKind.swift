import Glibc
import HoldfastLinux

/// The kinds of folders that Holdfast makes. Each is refused where another kind is needed.
package enum FolderKind: String, Sendable, CaseIterable {
  /// A device: its key, policy and ledger.
  case device
  /// An attestation service and backend.
  case service
  /// A prover's enrolments.
  case prover
  /// A user's authenticator.
  case authenticator

  /// The files and folders that only a folder of this kind has.
  var entryNames: [String] {
    switch self {
    case .device: ["device.json", "device.key", "ledger.sqlite", "actuator.state"]
    case .service: ["issuer.key", "account.key", "release.keys", "attestation-encryption.jwk", "attestation.sqlite"]
    case .prover: ["enrolment.json", "measurement_config.bin", "fingerprints.cbor", "devices", "pending"]
    case .authenticator: ["authenticator.sqlite"]
    }
  }

  /// The kind of a folder, by the entries in it; nil where it has none of them, or is not there.
  ///
  /// - Parameter path: the folder; a symbolic link to one is followed.
  /// - Throws: `noPermission`, `other`.
  package static func kind(ofFolder path: String) throws(FileError) -> FolderKind? {
    let folder: Descriptor
    do {
      folder = try Descriptor(opening: path, flags: O_RDONLY | O_DIRECTORY)
    } catch {
      switch FileError(error, at: path).kind {
      case .notFound, .notDirectory, .symbolicLink: return nil
      default: throw FileError(error, at: path)
      }
    }
    if let half = try HalfMadeFolder.kind(at: path) { return half }
    for kind in allCases {
      for name in kind.entryNames where try hasEntry(name, in: folder, at: path) { return kind }
    }
    return nil
  }

  /// Refuses a folder of another kind; one without a kind is not refused.
  ///
  /// - Throws: `anotherKind` with the kind that it is, and as ``kind(ofFolder:)`` does.
  package func require(ofFolder path: String) throws(FileError) {
    guard let kind = try Self.kind(ofFolder: path), kind != self else { return }
    throw FileError(.anotherKind(kind), at: path)
  }

  private static func hasEntry(
    _ name: String, in folder: borrowing Descriptor, at path: String
  ) throws(FileError) -> Bool {
    var status = stat()
    do { try retrying { unsafe fstatat(folder.number, name, &status, AT_SYMLINK_NOFOLLOW) } } catch {
      guard error.number == ENOENT else { throw FileError(error, at: path) }
      return false
    }
    return true
  }
}

/// The mark of a folder whose making began and did not end: the file `half-made`, which names the kind.
///
/// It is written before anything else and removed after everything else, so the next command can tell a folder that nobody
/// has used yet from one that lost a file. It may remove the former.
package enum HalfMadeFolder {
  static let markName = "half-made"

  /// Whether the making of a folder began and did not end.
  ///
  /// - Throws: `noPermission`, `other`.
  package static func isHalfMade(_ path: String) throws(FileError) -> Bool {
    var status = stat()
    do { try retrying { unsafe lstat(path + "/" + markName, &status) } } catch {
      switch FileError(error, at: path).kind {
      case .notFound, .notDirectory: return false
      default: throw FileError(error, at: path)
      }
    }
    return true
  }

  /// Marks a folder durably, before anything is made in it. Unfinished files of an earlier attempt, which may hold a secret, are
  /// removed first.
  ///
  /// - Throws: as `Files.writeFileAtomically` and `Files.removeFile` do.
  package static func mark(_ path: String, as kind: FolderKind) throws(FileError) {
    try Files.removeTemporaries(inFolder: path)
    try Files.writeFileAtomically(Array("\(kind.rawValue)\n".utf8), at: path + "/" + markName, overwrite: true)
  }

  /// Removes the mark durably, after everything was made.
  ///
  /// - Throws: as `Files.removeFile` does.
  package static func unmark(_ path: String) throws(FileError) {
    try Files.removeFile(at: path + "/" + markName)
  }

  /// Removes files of a half-made folder, then the mark; those that are not there do not count.
  ///
  /// - Parameter names: the files that the making makes.
  /// - Throws: as `Files.removeFile` does.
  package static func clear(_ path: String, of names: [String]) throws(FileError) {
    for name in names {
      do throws(FileError) { try Files.removeFile(at: path + "/" + name) } catch {
        guard error.kind == .notFound else { throw error }
      }
    }
    try unmark(path)
  }

  /// The kind that the mark in a folder names; nil where there is no mark, or one that names none.
  static func kind(at path: String) throws(FileError) -> FolderKind? {
    guard try isHalfMade(path) else { return nil }
    let bytes = try Files.readFile(
      at: path + "/" + markName, limit: 64, requirements: [.secret, .noSymbolicLink])
    return FolderKind(rawValue: String(decoding: bytes.dropLast(), as: UTF8.self))
  }
}
