import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement
import HoldfastStorage

extension ProverFolder {
  /// Refuses a folder of another kind, before anything is measured or issued for it.
  func checkKind() throws(StateFolderFault) {
    do throws(FileError) { try FolderKind.prover.require(ofFolder: path) } catch { throw .file(error) }
  }

  /// Refuses a device that is enrolled already. Work that ends in ``store(_:replacing:)`` asks this first.
  func checkIsNew(_ device: DeviceID) throws(StateFolderFault) {
    if try hasEnrolment(of: device) { throw .alreadyEnrolled(device) }
  }

  /// Writes an enrolment. Until it is whole, the one that it replaces stays as it is.
  ///
  /// The files are written into a folder next to it, which then takes the name in one step. Whatever a process that was stopped
  /// has left is removed by the next one.
  ///
  /// - Parameter replacing: whether an enrolment of the device may be there.
  /// - Throws: `alreadyEnrolled`, `busy`, `noExchange`, `file`.
  func store(_ enrolment: Enrolment, replacing: Bool) throws(StateFolderFault) {
    let device = enrolment.descriptor.deviceID
    try makeFolders(devicesPath)
    try takingTurns(in: devicesPath) { () throws(StateFolderFault) in
      if !replacing { try checkIsNew(device) }
      try replaceFolder(named: hexadecimal(device), in: devicesPath) { (staging) throws(StateFolderFault) in
        try staging.write(enrolment)
      }
      // The older one must not come back when the newer one is removed.
      if let old = try? oldEntry(), old.device == device { try old.folder.removeFiles() }
    }
  }

  private func hasEnrolment(of device: DeviceID) throws(StateFolderFault) -> Bool {
    guard let entry = try entry(of: device) else { return false }
    return try entry.folder.hasEnrolment()
  }
}

/// Baselines that wait for their tokens, in `pending`: between `measure` and `issue`.
extension ProverFolder {
  private var pendingPath: String { "\(path)/pending" }

  /// The name in `pending` of a baseline that was taken for no device in particular.
  private static let anyDevice = "any"

  /// Writes a baseline that waits for its token.
  ///
  /// - Parameters:
  ///   - device: The device that it is for; nil for whichever `issue` names.
  ///   - replacing: Whether one that waits already may be lost.
  /// - Throws: `baselineWaits`, `busy`, `noExchange`, `file`.
  func begin(
    configuration: [UInt8], fingerprints: BaselineFingerprints, for device: DeviceID?, replacing: Bool
  ) throws(StateFolderFault) {
    try makeFolders(pendingPath)
    try takingTurns(in: pendingPath) { () throws(StateFolderFault) in
      if !replacing { try checkNothingWaits(for: device) }
      try replaceFolder(named: pendingName(device), in: pendingPath) { (staging) throws(StateFolderFault) in
        try staging.write(configuration, as: EnrolmentFolder.configurationName)
        try staging.write(fingerprints.encoded(), as: EnrolmentFolder.fingerprintsName)
      }
    }
  }

  /// Refuses to begin where a baseline waits already.
  func checkNothingWaits(for device: DeviceID?) throws(StateFolderFault) {
    let place = pendingFolder(device)
    guard let configuration = try place.configurationIfThere(), try ownerOfBaseline(configuration) == nil else {
      return
    }
    throw .baselineWaits(path: place.path)
  }

  /// The baseline that waits for a token of this device's: its own, one for no device in particular, or one that an older
  /// version left in the state folder itself.
  ///
  /// - Throws: `noBaseline`; `usedBaseline` where an enrolment has it already.
  func loadBegun(
    for device: DeviceID
  ) throws(StateFolderFault) -> (configuration: [UInt8], fingerprints: BaselineFingerprints) {
    guard let place = try waitingPlace(for: device) else { throw .noBaseline(device) }
    let configuration = try place.loadConfiguration()
    if let owner = try ownerOfBaseline(configuration) { throw .usedBaseline(owner) }
    return (configuration, try place.loadFingerprints())
  }

  /// Removes a baseline that has become an enrolment. One that cannot be removed is known by its configuration.
  func removeBegun(configuration: [UInt8], for device: DeviceID) {
    for place in [pendingFolder(device), pendingFolder(nil)] {
      guard let found = try? place.configurationIfThere(), found == configuration else { continue }
      try? Files.removeFlatFolder(at: place.path)
    }
    // Another baseline may wait there still, and then this does nothing.
    _ = unsafe rmdir(pendingPath)
  }

  private func pendingName(_ device: DeviceID?) -> String { device.map { hexadecimal($0) } ?? Self.anyDevice }

  private func pendingFolder(_ device: DeviceID?) -> EnrolmentFolder {
    EnrolmentFolder(path: "\(pendingPath)/\(pendingName(device))")
  }

  private func waitingPlace(for device: DeviceID) throws(StateFolderFault) -> EnrolmentFolder? {
    for place in [pendingFolder(device), pendingFolder(nil)] {
      if try place.configurationIfThere() != nil { return place }
    }
    let old = EnrolmentFolder(path: path)
    if try old.hasEnrolment() { return nil }
    return try old.configurationIfThere() == nil ? nil : old
  }

  /// The enrolled device whose baseline this is.
  private func ownerOfBaseline(_ configuration: [UInt8]) throws(StateFolderFault) -> DeviceID? {
    for entry in (try? entries()) ?? [] {
      // A damaged enrolment is nobody's reason to refuse another one.
      guard let other = try? entry.folder.configurationIfThere(), other == configuration else { continue }
      if try entry.folder.hasEnrolment() { return entry.device }
    }
    return nil
  }
}

extension ProverFolder {
  /// Makes the state folder and the one below it, each 0700, if they are not there.
  private func makeFolders(_ folder: String) throws(StateFolderFault) {
    do throws(FileError) {
      try Files.createPrivateDirectory(at: path)
      try FolderKind.prover.require(ofFolder: path)
      try Files.createPrivateDirectory(at: folder)
    } catch { throw .file(error) }
  }

  private func takingTurns(
    in folder: String, _ body: () throws(StateFolderFault) -> Void
  ) throws(StateFolderFault) {
    let turns: FolderTurns
    do throws(FileError) { turns = try FolderTurns(directory: folder) } catch { throw .file(error) }
    try turns.take(orThrow: StateFolderFault.busy, body)
  }

  /// Fills a new folder and puts it in the place of the one with that name, in one step.
  private func replaceFolder(
    named name: String, in parent: String, _ fill: (EnrolmentFolder) throws(StateFolderFault) -> Void
  ) throws(StateFolderFault) {
    let staging = EnrolmentFolder(path: "\(parent)/.new-\(name)")
    do throws(FileError) {
      try Self.remove(staging.path)
      try Files.createPrivateDirectory(at: staging.path)
    } catch { throw .file(error) }
    do throws(StateFolderFault) {
      try fill(staging)
      do throws(FileError) {
        guard try Files.renameFolder(at: staging.path, to: name) else { return }
      } catch {
        if error.kind == .other(errno: EINVAL) || error.kind == .other(errno: ENOSYS) {
          throw .noExchange(path: "\(parent)/\(name)")
        }
        throw .file(error)
      }
    } catch {
      try? Self.remove(staging.path)
      throw error
    }
    // The new one counts already; the old one that is left is removed by the next.
    try? Self.remove(staging.path)
  }

  private static func remove(_ path: String) throws(FileError) {
    do throws(FileError) { try Files.removeFlatFolder(at: path) } catch {
      switch error.kind {
      case .notFound: return
      case .notDirectory, .symbolicLink: try Files.removeFile(at: path)
      default: throw error
      }
    }
  }
}

extension EnrolmentFolder {
  /// The bytes of the configuration, whatever they are; nil where there is no such file.
  fileprivate func configurationIfThere() throws(StateFolderFault) -> [UInt8]? {
    do throws(StateFolderFault) { return try read(Self.configurationName, limit: 4096) } catch {
      if case .missing = error { return nil }
      if case .file(let fault) = error, fault.kind == .notDirectory { return nil }
      throw error
    }
  }
}
