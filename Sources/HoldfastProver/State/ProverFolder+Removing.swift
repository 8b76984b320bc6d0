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
    _ = try removeWhole(device) { true }
  }

  /// Removes an enrolment in the same way, unless another process has replaced it meanwhile.
  ///
  /// - Returns: whether this enrolment is gone and no other has taken its place.
  /// - Throws: `busy`, `file`.
  package func remove(_ enrolment: Enrolment) throws(StateFolderFault) -> Bool {
    try checkKind()
    let device = enrolment.descriptor.deviceID
    return try removeWhole(device) {
      // One that is damaged by now is nobody's newer enrolment.
      guard let stored = try? entry(of: device)?.load() else { return true }
      return stored.token == enrolment.token && stored.terms == enrolment.terms
    }
  }

  /// Removes the enrolment of a device in the same way, unless another process has replaced it meanwhile.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - token: The token of the enrolment; nil for one that is damaged.
  /// - Returns: Whether the enrolment is gone. An enrolment with another token stays.
  /// - Throws: `notEnrolled`, `nothingEnrolled`, `busy`, `file`.
  package func remove(_ device: DeviceID, ifTokenIs token: [UInt8]?) throws(StateFolderFault) -> Bool {
    try checkKind()
    _ = try requiredEntry(of: device)
    return try removeWhole(device) {
      guard let stored = try? entry(of: device)?.load() else { return true }
      return stored.token == token
    }
  }

  /// Removes everything about a device if `condition`, which is asked while no other process writes, is met.
  private func removeWhole(_ device: DeviceID, if condition: () -> Bool) throws(StateFolderFault) -> Bool {
    let name = hexadecimal(device)
    var isMet: Bool?
    func removeOld() throws(StateFolderFault) {
      // The older enrolment goes first, because it must not count when the newer one is gone.
      if let old = try? oldEntry(), old.device == device { try old.folder.removeFiles() }
    }
    try inFolder(devicesPath) { () throws(StateFolderFault) in
      isMet = condition()
      guard isMet == true else { return }
      try removeOld()
      try remove(name, in: devicesPath)
    }
    // Without a folder `devices`, there are only the files of an older version.
    if isMet == nil {
      isMet = condition()
      if isMet == true { try removeOld() }
    }
    guard isMet == true else { return false }
    try inFolder(pendingPath) { () throws(StateFolderFault) in try remove(name, in: pendingPath) }
    return true
  }

  /// Removes all enrolments and waiting baselines, but neither pins nor the rules about the posture. The removal is durable when
  /// this returns. After an interruption, the call is repeated.
  ///
  /// - Throws: `busy`, `file`.
  package func removeEnrolments() throws(StateFolderFault) {
    try checkKind()
    _ = try removeEntries()
    try EnrolmentFolder(path: path).removeFiles()
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
    count += try removeEntries()
    try EnrolmentFolder(path: path).removeFiles()
    for name in [Self.servicesName, Self.postureRulesName] { try removing("\(path)/\(name)") }
    do throws(FileError) { try Files.removeTemporaries(inFolder: path) } catch { throw .file(error) }
    let rest = try entryNames(path)
    if rest.isEmpty { try removeIfEmpty(path) }
    return Removed(enrolmentCount: count, otherNames: rest)
  }

  /// Removes all that is in `devices` and `pending`, and returns the number of enrolments.
  private func removeEntries() throws(StateFolderFault) -> Int {
    var count = 0
    for folder in [devicesPath, pendingPath] {
      try inFolder(folder) { () throws(StateFolderFault) in
        for name in try entryNames(folder) {
          if folder == devicesPath, fixedBytes(hexadecimal: name) as DeviceID? != nil { count += 1 }
          try remove(name, in: folder)
        }
      }
      try removeIfEmpty(folder)
    }
    return count
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
