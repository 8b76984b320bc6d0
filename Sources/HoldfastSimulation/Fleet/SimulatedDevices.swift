import HoldfastCore
import HoldfastDevice
import HoldfastOpenSSL
import HoldfastStorage

/// The devices of the fleet, with the core's judgement of messages about bulletins. They have no clocks.
final class SimulatedDevices {
  let ledgers: SimulatedLedgers
  private var store: SimulatedLedgers
  private let issuer: KeyID
  private var cryptography = OpenSSLCryptography()
  private var key: P256PrivateKey
  private let keyID: KeyID
  private let policy = DevicePolicy.forSimulatedLock
  /// The bulletins that the issuer has signed, by which a forged one is recognised.
  private let genuine: Set<[UInt8]>
  /// The number of deliveries that were taken although the issuer had not signed the bulletin.
  private(set) var forgedTakenCount = 0

  init(_ settings: SimulationSettings, service: SimulatedService) throws {
    var cryptography = OpenSSLCryptography()
    let key = try P256PrivateKey()
    keyID = try HoldfastCore.keyID(of: key.publicPoint, using: &cryptography)
    self.key = key
    issuer = try HoldfastCore.keyID(of: service.issuer, using: &cryptography)
    ledgers = try SimulatedLedgers(
      deviceCount: settings.deviceCount, issuer: service.issuer, issuerID: issuer, group: service.group)
    store = ledgers
    genuine = Set(service.editions.flatMap { $0.bulletins.map(\.bytes) })
  }

  /// Returns the state of a device's list, which M3 tells after an accepted round.
  func state(of device: Int) throws -> BulletinState { try ledgers.list(of: device).state(using: &cryptography) }

  /// Begins what follows an accepted round at a device.
  func connect(to device: Int) throws -> SimulatedConnection {
    try ledgers.visit(device)
    var allowance = MailAllowance()
    allowance.note(issuer, isNew: true)
    return SimulatedConnection(devices: self, device: device, allowance: allowance)
  }

  /// Judges a message of the visited device's peer.
  fileprivate func judge(
    _ message: [UInt8], of device: Int, allowance: inout MailAllowance, into bytes: inout [UInt8]
  ) throws(DeviceFault) -> MailJudgement {
    let judgement = try judgeMail(
      message.span, to: SimulatedLedgers.deviceID(device), key: &key, keyID: keyID, store: &store, policy: policy,
      realClock: nil, allowance: &allowance, into: &bytes, using: &cryptography)
    if case .answered = judgement, let answer = try? BulletinAnswer(bytes.span), answer.result == .taken,
      answer.list == nil, !isGenuine(message)
    {
      forgedTakenCount += 1
    }
    return judgement
  }

  private func isGenuine(_ message: [UInt8]) -> Bool {
    guard let mail = try? MailMessage(message.span), mail.kind == .bulletin else { return false }
    var bytes: [UInt8] = []
    bytes.append(mail.bytes)
    return genuine.contains(bytes)
  }
}

/// The connection of a prover with a device after an accepted round, without a socket. It counts bytes and checks of signatures.
struct SimulatedConnection {
  private let devices: SimulatedDevices
  private let device: Int
  private var allowance: MailAllowance
  /// Whether the device has not closed the connection.
  private(set) var isOpen = true
  /// The bytes of all messages about bulletins, in both directions.
  private(set) var byteCount = 0
  /// The number of signatures that the device has checked.
  private(set) var checkCount = 0

  fileprivate init(devices: SimulatedDevices, device: Int, allowance: MailAllowance) {
    (self.devices, self.device, self.allowance) = (devices, device, allowance)
  }

  /// Sends a bulletin, or the question for the list (nil), and returns the answer; nil if the device closes the connection without one.
  mutating func exchange(_ bulletin: [UInt8]?) throws(DeviceFault) -> BulletinAnswer? {
    guard isOpen else { return nil }
    var message: [UInt8] = []
    let bytes = bulletin ?? []
    MailMessage.encode(bulletin == nil ? .list : .bulletin, bytes.span, into: &message)
    byteCount += message.count
    let hadCheck = allowance.hasCheck
    var answer: [UInt8] = []
    let judgement = try devices.judge(message, of: device, allowance: &allowance, into: &answer)
    if hadCheck, !allowance.hasCheck { checkCount += 1 }
    switch judgement {
    case .otherMessage, .malformed, .page:
      isOpen = false
      var written: [UInt8] = []
      VerdictMessage.encode(unsealed: .malformed, into: &written)
      byteCount += written.count
      return nil
    case .answered(let isForged):
      isOpen = !isForged
      byteCount += answer.count
      return try? BulletinAnswer(answer.span)
    }
  }
}
