import HoldfastCore
import HoldfastFormats
import HoldfastLinux

/// A prover's state folder. `enroll` fills it, and `prove` reads it.
///
/// It holds one enrolment for each device, in `devices/<id>`, where the id has 32 hexadecimal digits. Older versions
/// put the files of their only enrolment into the state folder itself. Such an enrolment counts as one more device,
/// unless `devices` has a newer one for the same device.
package struct ProverFolder: Sendable {
  package let path: String

  package init(path: String) { self.path = path }

  /// The largest number of devices. More are a mistake, or the folder is another one.
  package static let deviceLimit = 65_536

  /// One enrolled device, with the folder of its files.
  package struct Entry: Sendable {
    package let device: DeviceID
    package let folder: EnrolmentFolder
    /// Whether the files are in the state folder itself.
    package let isOfOldLayout: Bool
  }

  package var devicesPath: String { "\(path)/devices" }

  /// Returns the folder of a device, whether it is enrolled or not.
  package func folder(of device: DeviceID) -> EnrolmentFolder {
    EnrolmentFolder(path: "\(devicesPath)/\(hexadecimal(device))")
  }

  /// Returns the enrolled devices, sorted by their ids. It opens no files, except those of an enrolment in the old
  /// layout.
  ///
  /// - Throws: `file` if the folder cannot be read. The fault of a damaged enrolment in the old layout is thrown if it
  ///   is the only one.
  package func entries() throws(StateFolderFault) -> [Entry] {
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

  /// Returns the entry of a device; nil if it is not enrolled.
  package func entry(of device: DeviceID) throws(StateFolderFault) -> Entry? {
    if let entry = try newEntry(of: device) { return entry }
    guard let old = try? oldEntry(), old.device == device else { return nil }
    return old
  }

  /// Returns the entry of a device whose id was given.
  ///
  /// - Throws: `notEnrolled`, `nothingEnrolled`.
  package func requiredEntry(of device: DeviceID) throws(StateFolderFault) -> Entry {
    if let entry = try entry(of: device) { return entry }
    let enrolled = try entries().map { $0.device }
    guard !enrolled.isEmpty else { throw try nothingEnrolled() }
    throw .notEnrolled(device, enrolled: enrolled)
  }

  /// Returns the fault for a folder without entries. The folder itself may be missing.
  package func nothingEnrolled() throws(StateFolderFault) -> StateFolderFault {
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

  /// Returns the enrolment in the state folder itself; nil if there is none.
  package func oldEntry() throws(StateFolderFault) -> Entry? {
    let folder = EnrolmentFolder(path: path)
    guard try folder.hasEnrolment() else { return nil }
    return Entry(device: try folder.loadDevice().deviceID, folder: folder, isOfOldLayout: true)
  }

  /// Returns the names in `devices`; none if it does not exist.
  private func names() throws(StateFolderFault) -> [String] {
    do throws(FileError) { return try Files.names(inFolder: devicesPath, limit: Self.deviceLimit) } catch {
      guard error.kind == .notFound else { throw .file(error) }
      return []
    }
  }
}

extension ProverFolder.Entry {
  /// Reads the enrolment. `enrolment.json` must name the device after which its folder is named.
  package func load() throws(StateFolderFault) -> Enrolment {
    let enrolment = try folder.load()
    guard enrolment.descriptor.deviceID == device else { throw folder.damaged(EnrolmentFolder.enrolmentName) }
    return enrolment
  }
}
