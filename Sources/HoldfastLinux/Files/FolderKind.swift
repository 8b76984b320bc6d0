import Glibc

/// The kinds of folders that Holdfast creates. A folder is rejected if another kind is required.
public enum FolderKind: String, Sendable, CaseIterable {
  /// The folder of a device: its key, policy and ledger.
  case device
  /// The folder of an attestation service and backend.
  case service
  /// The folder of a prover: its enrolments.
  case prover
  /// The folder of a user's authenticator.
  case authenticator
  /// The folder of a vault, with its wrapped key.
  case vault

  /// The files and folders that only a folder of this kind has.
  var entryNames: [String] {
    switch self {
    case .device: ["device.json", "device.key", "ledger.sqlite", "actuator.state"]
    case .service: ["issuer.key", "account.key", "release.keys", "attestation-encryption.jwk", "attestation.sqlite"]
    case .prover:
      [
        "enrolment.json", "measurement_config.bin", "fingerprints.cbor", "devices", "pending", "services.json",
        "posture_rules.json",
      ]
    case .authenticator: ["authenticator.sqlite"]
    case .vault: ["vault.key", "vault.copy", "attempts"]
    }
  }

  /// Returns the kind of a folder according to its entries; nil if it has none of them, or does not exist.
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
    if let half = try IncompleteFolder.kind(at: path) { return half }
    for kind in allCases {
      for name in kind.entryNames where try hasEntry(name, in: folder, at: path) { return kind }
    }
    return nil
  }

  /// Rejects a folder of another kind. A folder without a kind is accepted.
  ///
  /// - Throws: `anotherKind` with the actual kind, and the errors of ``kind(ofFolder:)``.
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

/// The mark of a folder whose creation began and did not end: the file `half-made`, which names the kind.
///
/// The mark is written before all other files and removed after them. So the next command can distinguish a folder that has
/// never been used, which it may remove, from one that lost a file.
package enum IncompleteFolder {
  package static let markName = "half-made"

  /// Returns whether the creation of a folder began and did not end.
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

  /// Marks a folder durably, before any other file is created in it. First it removes the unfinished files of an earlier attempt,
  /// which may hold a secret.
  ///
  /// - Throws: The errors of `Files.writeFileAtomically` and `Files.removeFile`.
  package static func mark(_ path: String, as kind: FolderKind) throws(FileError) {
    try Files.removeTemporaries(inFolder: path)
    try Files.writeFileAtomically(Array("\(kind.rawValue)\n".utf8), at: path + "/" + markName, overwrite: true)
  }

  /// Removes the mark durably, after all files are complete.
  ///
  /// - Throws: The errors of `Files.removeFile`.
  package static func unmark(_ path: String) throws(FileError) {
    try Files.removeFile(at: path + "/" + markName)
  }

  /// Removes the given files of a half-made folder, then the mark. Missing files are skipped.
  ///
  /// - Parameter names: The files that the creation writes.
  /// - Throws: The errors of `Files.removeFile`.
  package static func clear(_ path: String, of names: [String]) throws(FileError) {
    for name in names {
      do throws(FileError) { try Files.removeFile(at: path + "/" + name) } catch {
        guard error.kind == .notFound else { throw error }
      }
    }
    try unmark(path)
  }

  /// Returns the kind that the mark in a folder names; nil if there is no mark, or the mark names no known kind.
  static func kind(at path: String) throws(FileError) -> FolderKind? {
    guard try isHalfMade(path) else { return nil }
    let bytes = try Files.readFile(
      at: path + "/" + markName, limit: 64, requirements: [.secret, .noSymbolicLink])
    return FolderKind(rawValue: String(decoding: bytes.dropLast(), as: UTF8.self))
  }
}
