import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement
import HoldfastLinux

extension ProverFolder {
  /// Checks that the folder is a prover's, before anything is measured or issued for it.
  package func checkKind() throws(StateFolderFault) {
    do throws(FileError) { try FolderKind.prover.require(ofFolder: path) } catch { throw .file(error) }
  }

  /// Checks that a device is not enrolled. Operations that end in ``store(_:replacing:)`` do this first.
  package func checkIsNew(_ device: DeviceID) throws(StateFolderFault) {
    if try hasEnrolment(of: device) { throw .alreadyEnrolled(device) }
  }

  /// Writes an enrolment. The one that it replaces remains unchanged until the new one is complete.
  ///
  /// The files are written to a folder next to it, which then takes its name in one step. The next call removes the
  /// remains of an interrupted one.
  ///
  /// - Parameters:
  ///   - replacing: Whether an enrolment of the device may exist.
  ///   - host: The source of the uptime with which the offline limit begins.
  ///   - isRepeated: Whether the stored enrolment is the same: its latest time then stays.
  ///   - isRenewed: Whether only the terms are others: an enrolment with another token or newer terms, which another process stored
  ///     meanwhile, stays, and the latest time does not go back.
  /// - Throws: `alreadyEnrolled`, `busy`, `noExchange`, `file`; `badTerms` for terms of a token that was replaced.
  package func store(
    _ enrolment: Enrolment, replacing: Bool, host: HostSource = .system, isRepeated: Bool = false,
    isRenewed: Bool = false
  ) throws(StateFolderFault) {
    let device = enrolment.descriptor.deviceID
    let known = isRepeated || isRenewed ? try? entry(of: device)?.folder.latestTime() : nil
    let issued = LatestTime(seconds: enrolment.terms?.terms.issued ?? 0, uptime: host.uptime())
    let isKnownLater = isRepeated || known.map { $0.floor(issued.uptime) > issued.seconds } ?? false
    let time = isKnownLater ? known ?? issued : issued
    try makeFolders(devicesPath)
    try takingTurns(in: devicesPath) { () throws(StateFolderFault) in
      if !replacing { try checkIsNew(device) }
      if isRenewed {
        let stored = self.enrolment(of: enrolment.descriptor, with: enrolment.token)
        guard let stored, stored.terms.map({ $0.terms.issued < enrolment.terms?.terms.issued ?? 0 }) ?? true else {
          throw .badTerms
        }
      }
      try replaceFolder(named: hexadecimal(device), in: devicesPath) { (staging) throws(StateFolderFault) in
        try staging.write(enrolment, time: time)
      }
      // The older enrolment must not reappear when the newer one is removed.
      if let old = try? oldEntry(), old.device == device { try old.folder.removeFiles() }
    }
  }

  /// Returns the enrolment of a device if it is whole and has this token, and nil otherwise.
  package func enrolment(of device: DeviceDescriptor, with token: [UInt8]) -> Enrolment? {
    guard let enrolment = try? entry(of: device.deviceID)?.load(), enrolment.hasOwnConfiguration,
      enrolment.descriptor == device, enrolment.token == token
    else { return nil }
    return enrolment
  }

  /// Ends a call that stored an enrolment and then failed: the baseline of the enrolment still waits. Otherwise nothing changes.
  ///
  /// The enrolment is written again, because what a disk failed to write may be lost although it can still be read.
  package func complete(_ enrolment: Enrolment) throws(StateFolderFault) {
    let device = enrolment.descriptor.deviceID
    guard try waitingPlace(for: device)?.configurationIfThere() == enrolment.configuration else { return }
    try store(enrolment, replacing: true, isRepeated: true)
    removeBegun(configuration: enrolment.configuration, for: device)
  }

  private func hasEnrolment(of device: DeviceID) throws(StateFolderFault) -> Bool {
    guard let entry = try entry(of: device) else { return false }
    return try entry.folder.hasEnrolment()
  }
}

/// The pending baselines, which wait for their tokens between `measure` and `issue`, in the folder `pending`.
extension ProverFolder {
  var pendingPath: String { "\(path)/pending" }

  /// The name in `pending` of a baseline for any device.
  private static let anyDevice = "any"

  /// Writes a baseline that waits for its token.
  ///
  /// - Parameters:
  ///   - device: The device of the baseline; nil for the one that `issue` will name.
  ///   - request: The request to a service that the baseline is for; nil if its evidence travels in another way.
  ///   - replacing: Whether a pending baseline may be lost.
  /// - Throws: `baselineWaits`, `busy`, `noExchange`, `file`.
  package func begin(
    configuration: [UInt8], fingerprints: BaselineFingerprints, for device: DeviceID?, request: WaitingRequest? = nil,
    replacing: Bool
  ) throws(StateFolderFault) {
    try makeFolders(pendingPath)
    try takingTurns(in: pendingPath) { () throws(StateFolderFault) in
      if !replacing { try checkNothingWaits(for: device) }
      try replaceFolder(named: pendingName(device), in: pendingPath) { (staging) throws(StateFolderFault) in
        try staging.write(configuration, as: EnrolmentFolder.configurationName)
        try staging.write(fingerprints.encoded(), as: EnrolmentFolder.fingerprintsName)
        if let request { try staging.write(request.encoded, as: WaitingRequest.fileName) }
      }
    }
  }

  /// Returns the request to a service that a device's pending baseline is for; nil if there is no baseline, or its evidence
  /// travels in another way. A damaged request is an empty one, which no wishes equal.
  package func waitingRequest(for device: DeviceID) throws(StateFolderFault) -> WaitingRequest? {
    let place = pendingFolder(device)
    guard try place.configurationIfThere() != nil else { return nil }
    do throws(StateFolderFault) {
      return WaitingRequest(try place.read(WaitingRequest.fileName, limit: WaitingRequest.maximumByteCount))
    } catch {
      if case .missing = error { return nil }
      throw error
    }
  }

  /// Records the service's answer to the request of a device's pending baseline. Another baseline is not changed.
  package func record(
    _ request: WaitingRequest, configuration: [UInt8], for device: DeviceID
  ) throws(StateFolderFault) {
    try takingTurns(in: pendingPath) { () throws(StateFolderFault) in
      let place = pendingFolder(device)
      guard try place.configurationIfThere() == configuration else { return }
      try place.write(request.encoded, as: WaitingRequest.fileName)
    }
  }

  /// Checks that no baseline is pending.
  package func checkNothingWaits(for device: DeviceID?) throws(StateFolderFault) {
    let place = pendingFolder(device)
    guard let configuration = try place.configurationIfThere(), try ownerOfBaseline(configuration) == nil else {
      return
    }
    throw .baselineWaits(path: place.path)
  }

  /// Reads the baseline that waits for a device's token: the device's, one for any device, or one that an older version
  /// left in the state folder itself.
  ///
  /// - Throws: `noBaseline`; `usedBaseline` if an enrolment already has it.
  package func loadBegun(
    for device: DeviceID
  ) throws(StateFolderFault) -> (configuration: [UInt8], fingerprints: BaselineFingerprints) {
    guard let place = try waitingPlace(for: device) else { throw .noBaseline(device) }
    let configuration = try place.loadConfiguration()
    if let owner = try ownerOfBaseline(configuration) { throw .usedBaseline(owner) }
    return (configuration, try place.loadFingerprints())
  }

  /// Removes a baseline that has become an enrolment. If that fails, its configuration still shows that it was used.
  package func removeBegun(configuration: [UInt8], for device: DeviceID) {
    for place in [pendingFolder(device), pendingFolder(nil)] {
      guard let found = try? place.configurationIfThere(), found == configuration else { continue }
      try? Files.removeFlatFolder(at: place.path)
    }
    // If another baseline is still pending there, this does nothing.
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

  /// Returns the enrolled device that has this baseline.
  private func ownerOfBaseline(_ configuration: [UInt8]) throws(StateFolderFault) -> DeviceID? {
    for entry in (try? entries()) ?? [] {
      // A damaged enrolment is not a reason to refuse another one.
      guard let other = try? entry.folder.configurationIfThere(), other == configuration else { continue }
      if try entry.folder.hasEnrolment() { return entry.device }
    }
    return nil
  }
}

extension ProverFolder {
  /// Creates the state folder and the folder below it, each with mode 0700, if they do not exist.
  private func makeFolders(_ folder: String) throws(StateFolderFault) {
    do throws(FileError) {
      try Files.createPrivateDirectory(at: path, isBackedUp: false)
      try FolderKind.prover.require(ofFolder: path)
      try Files.createPrivateDirectory(at: folder)
    } catch { throw .file(error) }
  }

  func takingTurns(
    in folder: String, _ body: () throws(StateFolderFault) -> Void
  ) throws(StateFolderFault) {
    let turns: FolderTurns
    do throws(FileError) { turns = try FolderTurns(directory: folder) } catch { throw .file(error) }
    try turns.take(orThrow: StateFolderFault.busy, body)
  }

  /// Fills a new folder and exchanges it in one step for the one with that name.
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
    // The new folder is already valid. If the old one cannot be removed, the next call removes it.
    try? Self.remove(staging.path)
  }

  static func remove(_ path: String) throws(FileError) {
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
  /// Returns the bytes of the configuration without checking them; nil if there is no such file.
  fileprivate func configurationIfThere() throws(StateFolderFault) -> [UInt8]? {
    do throws(StateFolderFault) { return try read(Self.configurationName, limit: 4096) } catch {
      if case .missing = error { return nil }
      if case .file(let fault) = error, fault.kind == .notDirectory { return nil }
      throw error
    }
  }
}
