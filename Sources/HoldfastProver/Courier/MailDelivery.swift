import HoldfastCore
import HoldfastOpenSSL

/// The decisions of a courier at a device: whether it asks for the list, which bulletins it delivers, and the messages and bytes that it
/// may still send.
///
/// Source: docs/couriers.md, Rules for the prover.
package struct MailDelivery {
  /// The courier's mail for the device, with what it has learned at this visit.
  package var mail: Mail
  private var messageCount = 0
  private var byteCount: Int
  /// The number of bulletins that the device says it has taken.
  package private(set) var deliveredCount = 0

  /// Creates the delivery of mail of which at most `byteLimit` bytes are exchanged.
  package init(of mail: Mail, byteLimit: Int) { (self.mail, byteCount) = (mail, byteLimit) }

  /// Counts a message with this number of bytes. Returns whether it may be sent.
  mutating func useMessage(byteCount: Int) -> Bool {
    guard messageCount < MailAllowance.messageLimit, byteCount <= self.byteCount else { return false }
    messageCount += 1
    self.byteCount -= byteCount
    return true
  }

  /// Delivers bulletins that the device does not have. If there are none at all, nothing is asked.
  ///
  /// - Parameters:
  ///   - state: the state of the device's list, which it has authenticated.
  ///   - exchange: sends a bulletin, or the question for the list (nil), and returns the answer.
  /// - Throws: the errors of `exchange`; what the device had taken before is in ``mail``. `session` if the cryptography fails.
  package mutating func run(
    to state: BulletinState, exchange: (_ bulletin: [UInt8]?) throws(ProverError) -> BulletinAnswer
  ) throws(ProverError) {
    // Another courier may have delivered the same bulletins.
    var known: BulletinList?
    for list in [mail.list, mail.listWithBulletins] {
      if known == nil, let list, try self.state(of: list) == state { known = list }
    }
    if let known {
      mail.list = known
      mail.dropDelivered()
    } else if mail.bulletins.isEmpty {
      mail.doubtList()
    } else {
      guard useMessage(byteCount: 0) else { return }
      mail.list = try exchange(nil).list
    }
    var refused: [CarriedBulletin] = []
    while let bulletin = mail.next(byteLimit: byteCount, without: refused), useMessage(byteCount: bulletin.bytes.count)
    {
      let answer = try exchange(bulletin.bytes)
      switch answer.result {
      case .taken, .known:
        if answer.result == .taken {
          deliveredCount += 1
          mail.counts.bulletins += 1
        }
        mail.note(bulletin)
      // Another one may be of a key that the device trusts, or need no room. It comes first at the next visit, because this one has used
      // up the check of a signature.
      case .refused, .full:
        refused.append(bulletin)
        mail.postpone(bulletin)
      case .notAddressed, .missed: refused.append(bulletin)
      case .busy: return
      }
    }
  }

  private func state(of list: BulletinList) throws(ProverError) -> BulletinState {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { return try list.state(using: &cryptography) } catch {
      throw .session(.cryptography)
    }
  }
}
