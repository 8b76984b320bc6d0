import HoldfastCore
import HoldfastFormats
import HoldfastLinux

/// The two calls of an app that fetches bulletins for the devices that it visits. Proofs deliver them. Source: docs/couriers.md.
extension Prover {
  /// Returns the least of the numbers that a device has for its audiences, at most 2^53 - 1; 0 before it was asked. A service returns the
  /// bulletins with higher numbers.
  ///
  /// - Throws: `state` with `notEnrolled` for another device, and for a folder that cannot be read.
  public func bulletinNumber(of device: DeviceID) throws(ProverError) -> UInt64 {
    try inFolder { (folder) throws(StateFolderFault) in try folder.requiredEntry(of: device).folder.mail().have }
  }

  /// Returns the list of a device, as far as it is known here; nil before the device was asked.
  package func bulletinList(of device: DeviceID) throws(ProverError) -> BulletinList? {
    try inFolder { (folder) throws(StateFolderFault) in try folder.requiredEntry(of: device).folder.mail().list }
  }

  /// Keeps bulletins for a device, in place of earlier ones. Proofs deliver them, the oldest first.
  ///
  /// - Parameters:
  ///   - answer: the answer of a service to `GET /v1/bulletins`, at most 64 KiB. Of more than 16 bulletins or 16 KiB of them, the
  ///     newest are left out.
  ///   - device: the device, which is enrolled.
  /// - Returns: the number of bulletins that are kept.
  /// - Throws: `state` as above; `malformedMail` if it is no such answer.
  @discardableResult
  public func store(bulletins answer: [UInt8], for device: DeviceID) throws(ProverError) -> Int {
    guard let value = try? JSONValue(parsing: answer, byteLimit: 65_536), let bulletins = CarriedBulletin.all(in: value)
    else { throw .malformedMail }
    return try store(bulletins, for: device)
  }

  package func store(_ bulletins: [CarriedBulletin], for device: DeviceID) throws(ProverError) -> Int {
    try inFolder { (folder) throws(StateFolderFault) in
      let entry = try folder.requiredEntry(of: device)
      var mail = entry.folder.mail()
      mail.replace(by: bulletins)
      try entry.folder.write(mail)
      return mail.bulletins.count
    }
  }

  private func inFolder<Result>(
    _ body: (ProverFolder) throws(StateFolderFault) -> Result
  ) throws(ProverError) -> Result {
    do throws(StateFolderFault) { return try body(folder) } catch { throw .state(error) }
  }
}
