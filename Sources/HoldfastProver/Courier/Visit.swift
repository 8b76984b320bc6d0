import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// The time and the bytes that a prover spends at one visit for bulletins, after its command was accepted.
public struct CourierBudget: Sendable, Equatable {
  /// The time, in milliseconds; 0 for none.
  public var milliseconds: Int
  /// The bytes of bulletins.
  public var byteCount = 16_384

  /// Creates a budget.
  public init(milliseconds: Int = 300) { self.milliseconds = milliseconds }

  /// A budget that delivers nothing.
  public static let none = CourierBudget(milliseconds: 0)
}

/// The delivery of bulletins on a connection whose command was accepted.
///
/// Source: docs/couriers.md, Rules for the prover.
struct Visit: ~Copyable {
  private var mail: Mail
  private let folder: EnrolmentFolder
  private let deadline: Deadline
  /// The most deliveries. With the question for the list, a device answers no more messages.
  private static let deliveryLimit = 7
  private var byteCount: Int
  /// The number of bulletins that the device says it has taken.
  private(set) var deliveredCount = 0

  init(_ folder: EnrolmentFolder, _ budget: CourierBudget) {
    (self.folder, mail, byteCount) = (folder, folder.mail(), budget.byteCount)
    deadline = Deadline(afterMilliseconds: budget.milliseconds)
  }

  /// Delivers what the device does not have.
  ///
  /// - Parameter state: the state of the device's list, which it has authenticated.
  /// - Throws: If the device ends the connection or does not answer in time. What it had taken before is recorded.
  mutating func deliver(over conversation: inout Conversation, to state: BulletinState) throws(ProverError) {
    let before = mail
    let isKnown = try mail.list.map { (list) throws(ProverError) in try self.state(of: list) == state } ?? false
    defer { if mail != before { try? folder.write(mail) } }
    if isKnown { mail.dropDelivered() }
    guard !isKnown || mail.next(byteLimit: byteCount) != nil else { return }
    // The device has sent its next challenge already.
    try conversation.receive(by: deadline)
    if !isKnown { mail.list = try exchange(nil, over: &conversation).list }
    var refused: [CarriedBulletin] = []
    for _ in 0..<Self.deliveryLimit {
      guard let bulletin = mail.next(byteLimit: byteCount, without: refused) else { return }
      byteCount -= bulletin.bytes.count
      let answer = try exchange(bulletin.bytes, over: &conversation)
      switch answer.result {
      case .taken, .known:
        if answer.result == .taken { deliveredCount += 1 }
        mail.note(bulletin)
      // Another one may be of a key that the device trusts, or need no room.
      case .refused, .notAddressed, .missed, .full: refused.append(bulletin)
      case .busy: return
      }
    }
  }

  private func exchange(_ bulletin: [UInt8]?, over conversation: inout Conversation) throws(ProverError)
    -> BulletinAnswer
  {
    var message: [UInt8] = []
    BulletinMessage.encode(bulletin?.span, into: &message)
    try conversation.send(message.span, by: deadline)
    try conversation.receive(by: deadline)
    do throws(EncodingFault) { return try BulletinAnswer(conversation.received.span) } catch {
      throw .session(.malformed)
    }
  }

  private func state(of list: BulletinList) throws(ProverError) -> BulletinState {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { return try list.state(using: &cryptography) } catch {
      throw .session(.cryptography)
    }
  }
}
