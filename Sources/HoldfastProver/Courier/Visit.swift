import HoldfastCore
import HoldfastLinux

/// The time and the bytes that a prover spends at one visit for mail, after its command was accepted.
public struct CourierBudget: Sendable, Equatable {
  /// The time, in milliseconds; 0 for none.
  public var milliseconds: Int
  /// The bytes of bulletins, receipts and pages.
  public var byteCount = 16_384

  /// Creates a budget.
  public init(milliseconds: Int = 300) { self.milliseconds = milliseconds }

  /// A budget that carries nothing.
  public static let none = CourierBudget(milliseconds: 0)
}

/// The exchange of mail on a connection whose command was accepted, or refused only because the audit log is full.
///
/// Source: docs/couriers.md, Rules for the prover.
struct Visit: ~Copyable {
  private let folder: EnrolmentFolder
  private let deadline: Deadline
  private var delivery: MailDelivery
  /// Whether the device's next challenge has arrived, which precedes its answers.
  private var isBegun = false
  /// The number of bulletins that the device says it has taken.
  var deliveredCount: Int { delivery.deliveredCount }
  /// Whether the device gave a page of its audit log.
  private(set) var hasPage = false

  init(_ folder: EnrolmentFolder, _ budget: CourierBudget) {
    self.folder = folder
    delivery = MailDelivery(of: folder.mail(), byteLimit: budget.byteCount)
    deadline = Deadline(afterMilliseconds: budget.milliseconds)
  }

  /// Delivers what the device does not have, and takes a page of its audit log along.
  ///
  /// - Parameters:
  ///   - conversation: the connection.
  ///   - notice: the details of the verdict, which the device has authenticated.
  /// - Throws: If the device ends the connection or does not answer in time. What was exchanged before is recorded.
  mutating func exchangeMail(over conversation: inout Conversation, _ notice: Notice) throws(ProverError) {
    let before = delivery.mail
    defer { if delivery.mail != before { try? folder.write(delivery.mail) } }
    if delivery.mail.receiptIsFirst, notice.hasAuditPage { try deliverReceipt(over: &conversation) }
    if let state = notice.bulletinState {
      var isBegun = isBegun
      defer { self.isBegun = isBegun }
      let deadline = deadline
      try delivery.run(to: state) { (bulletin) throws(ProverError) in
        try Self.exchange(
          bulletin == nil ? .list : .bulletin, bulletin ?? [], over: &conversation, by: deadline, &isBegun)
      }
    }
    guard notice.hasAuditPage else { return }
    try deliverReceipt(over: &conversation)
    try takePage(over: &conversation)
  }

  /// Delivers the receipt. If the device has checked a signature already, it stays for the next visit, and comes first there if that
  /// check brought the device nothing.
  private mutating func deliverReceipt(over conversation: inout Conversation) throws(ProverError) {
    guard let receipt = delivery.mail.receipt, delivery.useMessage(byteCount: receipt.count) else { return }
    let answer = try Self.exchange(.receipt, receipt, over: &conversation, by: deadline, &isBegun)
    delivery.mail.receiptIsFirst = answer.result == .busy && delivery.deliveredCount == 0
    guard answer.result != .busy else { return }
    if answer.result == .taken { delivery.mail.counts.receipts += 1 }
    delivery.mail.receipt = nil
  }

  private mutating func takePage(over conversation: inout Conversation) throws(ProverError) {
    guard delivery.useMessage(byteCount: AuditPage.maximumSealedByteCount) else { return }
    let from = delivery.mail.missingEntry
    try Self.send(.page(from: from), [], over: &conversation, by: deadline, &isBegun)
    let answer: PageAnswer
    do throws(EncodingFault) { answer = try PageAnswer(conversation.received.span) } catch {
      throw .session(.malformed)
    }
    // The next one continues where the device is, unless the home says again that it misses something.
    delivery.mail.missingEntry = 0
    guard let page = answer.sealed else { return }
    var pages = folder.pages()
    pages.add(page)
    do throws(StateFolderFault) { try folder.write(pages) } catch { throw .state(error) }
    delivery.mail.counts.pages += 1
    hasPage = true
  }

  private static func exchange(
    _ kind: MailMessage.Kind, _ bytes: [UInt8], over conversation: inout Conversation, by deadline: Deadline,
    _ isBegun: inout Bool
  ) throws(ProverError) -> BulletinAnswer {
    try send(kind, bytes, over: &conversation, by: deadline, &isBegun)
    do throws(EncodingFault) { return try BulletinAnswer(conversation.received.span) } catch {
      throw .session(.malformed)
    }
  }

  /// Sends a message, and receives the answer.
  private static func send(
    _ kind: MailMessage.Kind, _ bytes: [UInt8], over conversation: inout Conversation, by deadline: Deadline,
    _ isBegun: inout Bool
  ) throws(ProverError) {
    if !isBegun { try conversation.receive(by: deadline) }
    isBegun = true
    var message: [UInt8] = []
    MailMessage.encode(kind, bytes.span, into: &message)
    try conversation.send(message.span, by: deadline)
    try conversation.receive(by: deadline)
  }
}
