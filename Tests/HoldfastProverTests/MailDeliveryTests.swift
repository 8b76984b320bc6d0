import HoldfastCore
import HoldfastOpenSSL
import Testing

import HoldfastProver

/// A courier asks a device only where it must, delivers in order, and says nothing at a visit without news.
@Suite struct MailDeliveryTests {
  private let device = AudienceID(filledWith: 1)
  private let group = AudienceID(filledWith: 2)

  private func bulletin(_ number: UInt64, after predecessor: UInt64 = 0, for audience: AudienceID) -> CarriedBulletin {
    CarriedBulletin(
      audience: audience, number: number, predecessor: predecessor, bytes: [UInt8(truncatingIfNeeded: number)])
  }

  private func list(_ number: UInt64, _ groupNumber: UInt64) -> BulletinList {
    BulletinList([
      BulletinList.Row(audience: device, number: number), BulletinList.Row(audience: group, number: groupNumber),
    ])
  }

  private func mail(_ bulletins: [CarriedBulletin], _ list: BulletinList?) -> Mail {
    var mail = Mail()
    mail.replace(by: bulletins)
    mail.list = list
    return mail
  }

  /// A visit at a device that has a list and answers each bulletin with a result. Returns the mail afterwards, and what was sent: a
  /// bulletin's number, or 0 for the question for the list.
  private func visit(
    _ mail: Mail, _ list: BulletinList, answering result: BulletinResult = .taken, byteLimit: Int = 16_384
  ) throws -> (mail: Mail, sent: [UInt64], deliveredCount: Int) {
    var cryptography = OpenSSLCryptography()
    let state = try list.state(using: &cryptography)
    var delivery = MailDelivery(of: mail, byteLimit: byteLimit)
    var sent: [UInt64] = []
    try delivery.run(to: state) { (bytes) throws(ProverError) in
      sent.append(bytes.map { UInt64($0[0]) } ?? 0)
      return bytes == nil ? BulletinAnswer(.taken, list: list) : BulletinAnswer(result)
    }
    return (delivery.mail, sent, delivery.deliveredCount)
  }

  @Test func `at a first visit the list is asked for, and what the device lacks is delivered in order`() throws {
    let bulletins = [bulletin(10, for: device), bulletin(15, for: group), bulletin(20, after: 10, for: device)]
    let visited = try visit(mail(bulletins, nil), list(10, 0))
    #expect(visited.sent == [0, 15, 20])
    #expect(visited.deliveredCount == 2)
    #expect(visited.mail.list == list(20, 15))
    #expect(visited.mail.counts.bulletins == 2)
    #expect(visited.mail.bulletins.count == 3, "the device has not proved that it took them")
  }

  @Test(arguments: [BulletinResult.refused, .full])
  func `a bulletin that the device does not take lets the next visit begin with another, also after a fetch`(
    result: BulletinResult
  ) throws {
    let bulletins = [bulletin(10, for: device), bulletin(15, for: group), bulletin(20, for: device)]
    let known = list(0, 0)
    var results = [result, .busy]
    func exchange(_ mail: Mail) throws -> (mail: Mail, sent: [UInt64]) {
      var cryptography = OpenSSLCryptography()
      var (delivery, sent) = (MailDelivery(of: mail, byteLimit: 16_384), [UInt64]())
      try delivery.run(to: known.state(using: &cryptography)) { (bytes) throws(ProverError) in
        sent.append(bytes.map { UInt64($0[0]) } ?? 0)
        return BulletinAnswer(results.isEmpty ? .busy : results.removeFirst())
      }
      return (delivery.mail, sent)
    }
    let first = try exchange(mail(bulletins, known))
    #expect(first.sent == [10, 15] && first.mail.bulletins.map(\.number) == [15, 20, 10])
    var fetched = first.mail
    fetched.replace(by: bulletins + [bulletin(30, for: group)])
    #expect(fetched.bulletins.map(\.number) == [15, 20, 30, 10])
    results = [.taken, .busy]
    let second = try exchange(fetched)
    #expect(second.sent == [15, 20] && second.mail.bulletins.map(\.number) == [15, 20, 30, 10])
    // Nothing is left out for good.
    results = [.taken, .taken, .taken, .taken]
    #expect(try exchange(mail([bulletin(10, for: device)], known)).sent == [10])
  }

  @Test func `a courier without bulletins asks nothing, and notices later what the device has or has lost`() throws {
    let first = try visit(mail([], nil), list(10, 0))
    #expect(first.sent.isEmpty)
    #expect(first.mail.list == nil)
    let bulletins = [bulletin(10, for: device), bulletin(15, for: group), bulletin(20, after: 10, for: device)]
    for now in [list(20, 15), list(0, 0)] {
      var visited = try visit(mail([], list(10, 0)), now)
      #expect(visited.sent.isEmpty)
      #expect(visited.mail.have == 0, "all bulletins are fetched again")
      visited.mail.replace(by: bulletins)
      let again = try visit(visited.mail, now)
      #expect(again.sent == (now == list(0, 0) ? [10, 15, 20] : []))
      #expect(again.mail.list == list(20, 15))
    }
  }

  @Test func `a device whose list is known is asked nothing, and has proved what it has`() throws {
    let known = try visit(mail([bulletin(10, for: device)], list(10, 0)), list(10, 0))
    #expect(known.sent.isEmpty)
    #expect(known.mail.bulletins.isEmpty)
    let news = try visit(mail([bulletin(20, after: 10, for: device)], list(10, 0)), list(10, 0))
    #expect(news.sent == [20])
  }

  @Test func `a device to which another courier has brought the same bulletins is asked nothing`() throws {
    let bulletins = [
      bulletin(15, for: group), bulletin(20, after: 10, for: device), bulletin(30, after: 20, for: device),
    ]
    let visited = try visit(mail(bulletins, list(10, 0)), list(30, 15))
    #expect(visited.sent.isEmpty)
    #expect(visited.mail.list == list(30, 15))
    #expect(visited.mail.bulletins.isEmpty)
  }

  @Test(arguments: [(20, 0), (20, 15), (30, 0), (40, 15), (9, 0)] as [(UInt64, UInt64)])
  func `a device with another list is asked, and gets what it lacks`(number: UInt64, groupNumber: UInt64) throws {
    let bulletins = [
      bulletin(15, for: group), bulletin(20, for: device), bulletin(30, after: 20, for: device),
    ]
    let visited = try visit(mail(bulletins, list(10, 0)), list(number, groupNumber))
    let lacking = bulletins.filter { $0.number > ($0.audience == group ? groupNumber : number) }.map(\.number)
    #expect(visited.sent == [0] + lacking)
    #expect(visited.mail.list == list(max(number, 30), 15))
  }

  @Test func `a device that took nothing, although somebody said so, is asked and gets it again`() throws {
    let bulletins = [bulletin(20, for: device)]
    let visited = try visit(mail(bulletins, list(10, 0)), list(10, 0))
    #expect(visited.sent == [20])
    let again = try visit(visited.mail, list(10, 0))
    #expect(again.sent == [0, 20])
  }

  @Test func `a refused bulletin is not sent twice, and does not keep back another one`() throws {
    let bulletins = [bulletin(15, for: group), bulletin(20, for: device)]
    for result in [BulletinResult.refused, .notAddressed, .missed, .full] {
      let visited = try visit(mail(bulletins, list(0, 0)), list(0, 0), answering: result)
      #expect(visited.sent == [15, 20], "\(result)")
      #expect(visited.deliveredCount == 0)
      #expect(visited.mail.list == list(0, 0))
    }
    let busy = try visit(mail(bulletins, list(0, 0)), list(0, 0), answering: .busy)
    #expect(busy.sent == [15])
    let known = try visit(mail(bulletins, list(0, 0)), list(0, 0), answering: .known)
    #expect(known.sent == [15, 20])
    #expect(known.deliveredCount == 0)
  }

  @Test func `more than eight messages are not sent, nor more bytes than permitted`() throws {
    let many = (1...12).map { bulletin($0, after: $0 - 1, for: device) }
    #expect(try visit(mail(many, nil), list(0, 0)).sent == [0, 1, 2, 3, 4, 5, 6, 7])
    #expect(try visit(mail(many, list(0, 0)), list(0, 0), byteLimit: 3).sent == [1, 2, 3])
  }
}
