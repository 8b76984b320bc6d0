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
  /// - Returns: The number of pages that the service took or refused; nil if it takes no pages of the device, which are kept.
  func handInPages(of device: DeviceID, state: String) throws(Failure) -> Int? {
    let pages = try reading(state) { (prover) throws(ProverError) in try prover.auditPages(of: device) }
    guard !pages.isEmpty else { return 0 }
    guard case .folder(let path) = self else { return try handInOnline(pages, of: device, state: state) }
    let received = try serving(path) { () throws(ServiceFolderFault) in
      try ServiceFolder(path: path).receive(pages: pages, of: device)
    }
    guard let received else { return nil }
    let receipt = CarriedReceipt(received.receipt, missing: received.log.missing ?? 0)
    try writing(state) { (prover) throws(ProverError) in try prover.store(receipt, forPages: pages, of: device) }
    return pages.count
  }

  /// The most pages that an online service takes in one request.
  private static let requestLimit = 4

  private func handInOnline(_ pages: [[UInt8]], of device: DeviceID, state: String) throws(Failure) -> Int? {
    guard case .online(let services, let seconds) = self else { return nil }
    var rest = pages[...]
    while !rest.isEmpty {
      let part = Array(rest.prefix(Self.requestLimit))
      let texts = part.map { JSONValue.string(paddedBase64($0)) }
      let answer = try services.askIfOffered(
        .audit, .object([("device", .string(hexadecimal(device))), ("pages", .array(texts))]),
        timeoutSeconds: seconds, state: state)
      guard let answer else { return nil }
      guard let receipt = CarriedReceipt(answer) else { throw Failure(CarrierFailure(.malformedAnswer), pinsIn: nil) }
      try writing(state) { (prover) throws(ProverError) in try prover.store(receipt, forPages: part, of: device) }
      rest = rest.dropFirst(part.count)
    }
    return pages.count
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

  /// Reads answers until one has a bulletin that the device does not have.
  private static func answers(
    of services: OnlineServices, _ seconds: UInt64, for device: DeviceID, _ list: BulletinList?, state: String
  ) throws(Failure) -> [CarriedBulletin] {
    try Mail.fetch(for: list) { (have) throws(Failure) in
      let answer = try services.ask(
        .bulletins, values: [hexadecimal(device), String(have)], timeoutSeconds: seconds, state: state)
      guard let bulletins = CarriedBulletin.all(in: answer) else {
        throw Failure(CarrierFailure(.malformedAnswer), pinsIn: nil)
      }
      return bulletins
    }
  }
}
