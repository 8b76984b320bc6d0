import HoldfastCore
import HoldfastFormats
import HoldfastStorage

/// A prover's state folder. `enroll` fills it, and `prove` reads it.
///
/// It holds one enrolment for each device, in `devices/<id>`; the id is written as 32 hexadecimal digits. Versions before this
/// layout put the files of their one enrolment into the state folder itself. Such an enrolment counts as one more device, unless
/// `devices` has the same one: that is the newer.
struct ProverFolder {
  let path: String

  /// More devices than this are a mistake, or another folder.
  static let deviceLimit = 65_536

  /// One enrolled device, and where its files are.
  struct Entry {
    let device: DeviceID
    let folder: EnrolmentFolder
    /// Whether the files are in the state folder itself.
    let isOfOldLayout: Bool
  }

  var devicesPath: String { "\(path)/devices" }

  /// The folder of a device that is enrolled, or is to be.
  func folder(of device: DeviceID) -> EnrolmentFolder { EnrolmentFolder(path: "\(devicesPath)/\(hexadecimal(device))") }

  /// The enrolled devices, sorted by their ids. None of their files is opened, but for an enrolment of the old layout.
  ///
  /// - Throws: `file` where the folder cannot be read. A damaged enrolment of the old layout is thrown where it is the only one.
  func entries() throws(StateFolderFault) -> [Entry] {
    var entries: [Entry] = []
    for name in try names() {
      guard let device: DeviceID = fixedBytes(hexadecimal: name) else { continue }
      entries.append(Entry(device: device, folder: folder(of: device), isOfOldLayout: false))
    }
    do throws(StateFolderFault) {
      guard let old = try oldEntry(), !entries.contains(where: { $0.device == old.device }) else { return entries }
      let index = entries.firstIndex { hexadecimal($0.device) > hexadecimal(old.device) } ?? entries.endIndex
      entries.insert(old, at: index)
    } catch {
      if entries.isEmpty { throw error }
    }
    return entries
  }

  /// The entry of a device; nil when it is not enrolled.
  func entry(of device: DeviceID) throws(StateFolderFault) -> Entry? {
    if let entry = try newEntry(of: device) { return entry }
    guard let old = try? oldEntry(), old.device == device else { return nil }
    return old
  }

  /// The only device's entry.
  ///
  /// - Throws: `nothingEnrolled`, `severalEnrolled`.
  func onlyEntry() throws(StateFolderFault) -> Entry {
    let entries = try entries()
    guard let entry = entries.first else { throw try nothingEnrolled() }
    guard entries.count == 1 else { throw .severalEnrolled(entries.map { $0.device }) }
    return entry
  }

  /// The only enrolment, as ``onlyEntry()`` and ``EnrolmentFolder/load()`` have it.
  func loadOnly() throws(StateFolderFault) -> Enrolment { try onlyEntry().load() }

  /// The entry of a device that was asked for by its id.
  ///
  /// - Throws: `notEnrolled`, `nothingEnrolled`.
  func requiredEntry(of device: DeviceID) throws(StateFolderFault) -> Entry {
    if let entry = try entry(of: device) { return entry }
    let enrolled = try entries().map { $0.device }
    guard !enrolled.isEmpty else { throw try nothingEnrolled() }
    throw .notEnrolled(device, enrolled: enrolled)
  }

  /// Why there is no entry: the folder itself may not be there.
  func nothingEnrolled() throws(StateFolderFault) -> StateFolderFault {
    do throws(FileError) {
      _ = try Files.names(inFolder: path, limit: Self.deviceLimit)
      try FolderKind.prover.require(ofFolder: path)
    } catch {
      guard error.kind == .notFound else { throw .file(error) }
    }
    return .nothingEnrolled
  }

  private func newEntry(of device: DeviceID) throws(StateFolderFault) -> Entry? {
    let folder = folder(of: device)
    guard try names().contains(hexadecimal(device)) else { return nil }
    return Entry(device: device, folder: folder, isOfOldLayout: false)
  }

  /// The enrolment in the state folder itself; nil where there is none.
  func oldEntry() throws(StateFolderFault) -> Entry? {
    let folder = EnrolmentFolder(path: path)
    guard try folder.hasEnrolment() else { return nil }
    return Entry(device: try folder.loadDevice().deviceID, folder: folder, isOfOldLayout: true)
  }

  /// The names in `devices`; none where that is not there.
  private func names() throws(StateFolderFault) -> [String] {
    do throws(FileError) { return try Files.names(inFolder: devicesPath, limit: Self.deviceLimit) } catch {
      guard error.kind == .notFound else { throw .file(error) }
      return []
    }
  }
}

extension ProverFolder.Entry {
  /// Reads the enrolment; `enrolment.json` must name the device that its folder is named after.
  func load() throws(StateFolderFault) -> Enrolment {
    let enrolment = try folder.load()
    guard enrolment.descriptor.deviceID == device else { throw folder.damaged(EnrolmentFolder.enrolmentName) }
    return enrolment
  }
}

/// A reason for which a prover's state folder cannot serve. It names files and ids, never contents.
enum StateFolderFault: Error {
  /// A file or folder could not be read or written.
  case file(FileError)
  /// A file of an enrolment is not there.
  case missing(path: String)
  /// A file is damaged, or belongs to another enrolment.
  case damaged(path: String)
  /// `enrolment.json` was written by another version.
  case otherVersion(path: String)
  /// No device is enrolled.
  case nothingEnrolled
  /// The device that answers, or that was asked for, is not enrolled; `enrolled` names those that are.
  case notEnrolled(DeviceID, enrolled: [DeviceID])
  /// One device was asked for, and another one answers.
  case anotherDevice(DeviceID, expected: DeviceID)
  /// The enrolled device answers with another key.
  case anotherKey(DeviceID, enrolled: KeyID, answered: KeyID)
  /// One device is needed, and several are enrolled.
  case severalEnrolled([DeviceID])
  /// The device is enrolled, and nobody asked for a replacement.
  case alreadyEnrolled(DeviceID)
  /// A baseline waits for its token, and nobody asked for a replacement.
  case baselineWaits(path: String)
  /// There is no baseline that a token could be issued for.
  case noBaseline(DeviceID)
  /// The baseline is that of an enrolled device.
  case usedBaseline(DeviceID)
  /// Another process is changing the folder.
  case busy
  /// The file system cannot replace a folder in one step.
  case noExchange(path: String)
  /// The cryptographic library failed.
  case cryptography
}
