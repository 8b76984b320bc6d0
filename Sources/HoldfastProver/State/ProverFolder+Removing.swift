import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux

extension ProverFolder {
  /// Removes the enrolment of a device, also a damaged one, and a baseline that waits for this device's token. The removal is
  /// durable when this returns.
  ///
  /// The enrolment loses its name in one step, so a power cut leaves all of it or none.
  ///
  /// - Throws: `notEnrolled`, `nothingEnrolled`, `busy`, `file`.
  package func remove(_ device: DeviceID) throws(StateFolderFault) {
    try checkKind()
    _ = try requiredEntry(of: device)
    let name = hexadecimal(device)
    // The older enrolment goes first, because it must not count when the newer one is gone.
    if let old = try? oldEntry(), old.device == device { try old.folder.removeFiles() }
    try inFolder(devicesPath) { () throws(StateFolderFault) in try remove(name, in: devicesPath) }
    try inFolder(pendingPath) { () throws(StateFolderFault) in try remove(name, in: pendingPath) }
  }

  /// The result of ``removeAll()``.
  package struct Removed: Sendable, Equatable {
    /// The number of enrolments.
    package let enrolmentCount: Int
    /// The names in the state folder that are not a prover's, and stay.
    package let otherNames: [String]
  }

  /// Removes all enrolments, waiting baselines, pins and posture rules, and the folder itself if nothing else is in it. The removal is durable
  /// when this returns. After an interruption, the call is repeated.
  ///
  /// - Throws: `busy`, `file`.
  package func removeAll() throws(StateFolderFault) -> Removed {
    try checkKind()
    var count = 0
    if let old = try? oldEntry(), try !entries().contains(where: { $0.device == old.device && !$0.isOfOldLayout }) {
      count += 1
    }
    for folder in [devicesPath, pendingPath] {
      try inFolder(folder) { () throws(StateFolderFault) in
        for name in try entryNames(folder) {
          if folder == devicesPath, fixedBytes(hexadecimal: name) as DeviceID? != nil { count += 1 }
          try remove(name, in: folder)
        }
      }
      try removeIfEmpty(folder)
    }
    try EnrolmentFolder(path: path).removeFiles()
    for name in [Self.servicesName, Self.postureRulesName] { try removing("\(path)/\(name)") }
    do throws(FileError) { try Files.removeTemporaries(inFolder: path) } catch { throw .file(error) }
    let rest = try entryNames(path)
    if rest.isEmpty { try removeIfEmpty(path) }
    return Removed(enrolmentCount: count, otherNames: rest)
  }

  /// Checks that the folder exists and is a prover's, before its user is asked whether to remove it.
  package func requireExistence() throws(StateFolderFault) {
    try checkKind()
    _ = try entryNames(path)
  }

  /// Removes a folder of files in two steps: it gets a name that counts as nothing, and then its files are removed.
  private func remove(_ name: String, in folder: String) throws(StateFolderFault) {
    let staging = name.hasPrefix(".new-") ? name : ".new-\(name)"
    do throws(FileError) {
      try Self.remove("\(folder)/\(staging)")
      guard staging != name else { return }
      do throws(FileError) { _ = try Files.renameFolder(at: "\(folder)/\(name)", to: staging) } catch {
        guard error.kind != .notFound else { return }
        throw error
      }
      try Self.remove("\(folder)/\(staging)")
    } catch { throw .file(error) }
  }

  /// Runs `body` while no other process writes into a folder; does nothing if the folder does not exist.
  private func inFolder(
    _ folder: String, _ body: () throws(StateFolderFault) -> Void
  ) throws(StateFolderFault) {
    do throws(StateFolderFault) { try takingTurns(in: folder, body) } catch {
      guard case .file(let fault) = error, fault.kind == .notFound, fault.path == folder else { throw error }
    }
  }

  private func entryNames(_ folder: String) throws(StateFolderFault) -> [String] {
    do throws(FileError) { return try Files.names(inFolder: folder, limit: 4 * Self.deviceLimit) } catch {
      throw .file(error)
    }
  }

  private func removing(_ file: String) throws(StateFolderFault) {
    do throws(FileError) { try Files.removeFile(at: file) } catch {
      guard error.kind == .notFound else { throw .file(error) }
    }
  }

  private func removeIfEmpty(_ folder: String) throws(StateFolderFault) {
    do throws(FileError) { try Files.removeEmptyFolder(at: folder) } catch {
      guard error.kind == .notFound || error.kind == .exists else { throw .file(error) }
    }
  }
}
