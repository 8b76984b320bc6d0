import HoldfastCore
import HoldfastFormats
import HoldfastLinux

/// The calls of an app that carries mail: two for the bulletins that proofs deliver, and two for the pages of audit logs that proofs take.
///
/// Source: docs/couriers.md.
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

  /// Returns the sealed pages of a device's audit log that are to be handed in, the oldest first, at most 16 of at most 3872 bytes each.
  ///
  /// - Throws: `state` as above.
  public func auditPages(of device: DeviceID) throws(ProverError) -> [[UInt8]] {
    try inFolder { (folder) throws(StateFolderFault) in try folder.requiredEntry(of: device).folder.pages().pages }
  }

  /// Takes note of the answer of the log's home: removes the pages, and keeps the receipt, which a proof delivers.
  ///
  /// - Parameters:
  ///   - answer: `{"receipt": base64 / null, "missing": number / null}`, at most 64 KiB: the receipt for the device, and the number of the
  ///     first entry that the home misses.
  ///   - pages: the pages that were handed in.
  ///   - device: the device that gave them.
  /// - Throws: `state` as above; `malformedMail` if it is no such answer.
  public func store(
    receipt answer: [UInt8], forPages pages: [[UInt8]], of device: DeviceID
  ) throws(ProverError) {
    guard let value = try? JSONValue(parsing: answer, byteLimit: 65_536), let receipt = CarriedReceipt(value) else {
      throw .malformedMail
    }
    try store(receipt, forPages: pages, of: device)
  }

  package func store(
    _ receipt: CarriedReceipt, forPages pages: [[UInt8]], of device: DeviceID
  ) throws(ProverError) {
    try inFolder { (folder) throws(StateFolderFault) in
      let entry = try folder.requiredEntry(of: device)
      var mail = entry.folder.mail()
      if let bytes = receipt.bytes { mail.receipt = bytes }
      mail.missingEntry = receipt.missing
      mail.counts.handedIn += UInt64(pages.count)
      // The receipt comes first: after a power cut in between, the pages are handed in again.
      try entry.folder.write(mail)
      var kept = entry.folder.pages()
      kept.remove(pages)
      try entry.folder.write(kept)
    }
  }

  private func inFolder<Result>(
    _ body: (ProverFolder) throws(StateFolderFault) -> Result
  ) throws(ProverError) -> Result {
    do throws(StateFolderFault) { return try body(folder) } catch { throw .state(error) }
  }
}
