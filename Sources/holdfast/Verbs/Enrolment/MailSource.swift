import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOnline
import HoldfastProver

/// A service with which a prover exchanges mail: it fetches bulletins for devices, and hands in pages of their audit logs.
enum MailSource {
  /// A service in a folder.
  case folder(String)
  /// Online services, and the seconds to wait for them.
  case online(OnlineServices, timeoutSeconds: UInt64)

  /// The most answers that are read to find bulletins that a device does not have.
  private static let answerLimit = 64

  /// The most pages in one request.
  private static let pageLimit = 4

  /// Fetches bulletins that a device does not have, and keeps them in place of earlier ones.
  ///
  /// - Parameter state: The state folder.
  /// - Returns: The number of bulletins that are kept.
  func fetch(for device: DeviceID, state: String) throws(Failure) -> Int {
    let list = try reading(state) { (prover) throws(ProverError) in try prover.bulletinList(of: device) }
    let bulletins: [CarriedBulletin]
    switch self {
    case .folder(let path): bulletins = try Self.issued(for: device, in: path).filter { $0.isMissing(in: list) }
    case .online(let services, let seconds):
      bulletins = try Self.answers(of: services, seconds, for: device, list, state: state)
    }
    return try writing(state) { (prover) throws(ProverError) in try prover.store(bulletins, for: device) }
  }

  /// Hands in the pages of a device's audit log, and keeps the receipt for the device.
  ///
  /// - Parameter state: The state folder.
  /// - Returns: The number of pages that the service took or refused; nil if the service does not take them, which keeps them.
  func handInPages(of device: DeviceID, state: String) throws(Failure) -> Int? {
    let pages = try reading(state) { (prover) throws(ProverError) in try prover.auditPages(of: device) }
    for start in stride(from: 0, to: pages.count, by: Self.pageLimit) {
      let part = Array(pages[start..<min(start + Self.pageLimit, pages.count)])
      guard let receipt = try receipt(for: part, of: device, state: state) else { return nil }
      try writing(state) { (prover) throws(ProverError) in
        try prover.store(receipt, forPages: part, of: device)
      }
    }
    return pages.count
  }

  /// Hands in some pages. Returns the answer; nil if the service does not take them.
  private func receipt(for pages: [[UInt8]], of device: DeviceID, state: String) throws(Failure) -> CarriedReceipt? {
    switch self {
    case .folder(let path):
      let received = try serving(path) { () throws(ServiceFolderFault) in
        try ServiceFolder(path: path).receive(pages: pages, of: device)
      }
      return received.map { CarriedReceipt($0.receipt, missing: $0.log.missing ?? 0) }
    case .online(let services, let seconds):
      let texts = pages.map { page in
        var text: [UInt8] = []
        text.append(asPaddedBase64: page.span)
        return JSONValue.string(String(decoding: text, as: UTF8.self))
      }
      let body = JSONValue.object([("device", .string(hexadecimal(device))), ("pages", .array(texts))])
      let answer = try services.ask(.audit, body, timeoutSeconds: seconds, state: state)
      guard let receipt = CarriedReceipt(answer) else {
        throw Failure(CarrierFailure(.malformedAnswer), pinsIn: nil)
      }
      return receipt
    }
  }

  private static func issued(for device: DeviceID, in path: String) throws(Failure) -> [CarriedBulletin] {
    let issued = try serving(path) { () throws(ServiceFolderFault) in try ServiceFolder(path: path).issuedBaselines() }
    do throws(ServiceLedgerFault) {
      return try issued.bulletins(for: device).map { bulletin in
        CarriedBulletin(
          audience: bulletin.stamp.audience, number: bulletin.stamp.number, predecessor: bulletin.stamp.predecessor,
          bytes: bulletin.bytes)
      }
    } catch { throw Failure(error, folder: path) }
  }

  /// Reads answers until one has a bulletin that the device does not have: an answer has what is above one number, but the device has a
  /// number for each of its audiences.
  private static func answers(
    of services: OnlineServices, _ seconds: UInt64, for device: DeviceID, _ list: BulletinList?, state: String
  ) throws(Failure) -> [CarriedBulletin] {
    var have = list?.rows.map(\.number).min() ?? 0
    for _ in 0..<answerLimit {
      let answer = try services.ask(
        .bulletins, values: [hexadecimal(device), String(have)], timeoutSeconds: seconds, state: state)
      guard let bulletins = CarriedBulletin.all(in: answer) else {
        throw Failure(CarrierFailure(.malformedAnswer), pinsIn: nil)
      }
      let missing = bulletins.filter { $0.isMissing(in: list) }
      guard missing.isEmpty, let last = bulletins.map(\.number).max(), last > have else { return missing }
      have = last
    }
    return []
  }
}
