import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// The messages that a session answers between rounds.
@Suite struct BulletinMailTests {
  private func message(_ bulletin: [UInt8]?) -> [UInt8] {
    var message: [UInt8] = []
    let bytes = bulletin ?? []
    MailMessage.encode(bulletin == nil ? .list : .bulletin, bytes.span, into: &message)
    return message
  }

  @Test func `a message of another type is none, and one of this type is read strictly`() throws {
    #expect(try isMail(message(nil)))
    #expect(try isMail(message([1, 2, 3])))
    for other in [[], [0x82, 0x08, 0x00], [0x83, 0x02, 0x40, 0xf6], [0xf6], [0x82], [0x82, 0x18, 0x07, 0xf6]]
      as [[UInt8]]
    {
      #expect(try !isMail(other))
    }
    for bad in [[0x81, 0x07], [0x82, 0x07], [0x82, 0x07, 0x00], [0x82, 0x07, 0xf6, 0x00]] as [[UInt8]] {
      #expect(throws: EncodingFault.self) { try isMail(bad) }
    }
    #expect(try isMail(message([UInt8](repeating: 0, count: 3072))))
    #expect(throws: EncodingFault.tooLong) { try isMail(message([UInt8](repeating: 0, count: 3073))) }
  }

  @Test func `a bulletin has at most 3072 bytes`() throws {
    let issuer = try TestIssuer()
    /// A bulletin with names of apps that have this many bytes more.
    func signed(_ more: Int) throws -> [UInt8] {
      var bulletin = TestBulletin(for: DeviceID(filledWith: 7))
      bulletin.revoked = (0..<111 as Range<UInt8>).map { (TokenID(filledWith: $0), until: testTime) }
      bulletin.versions = (0..<6).map { index in
        ("\(index)" + String(repeating: "x", count: 29 + min(max(more - 30 * index, 0), 30)), 1, 0, 0)
      }
      return try issuer.bulletin(bulletin)
    }
    let rest = 3072 - (try signed(0).count)
    try #require((0..<180).contains(rest))
    let (longest, tooLong) = (try signed(rest), try signed(rest + 1))
    #expect(longest.count == 3072 && tooLong.count == 3073)
    let count = try Bulletin(longest.span).claims.revoked.count
    #expect(count == 111)
    #expect(throws: EncodingFault.tooLong) { _ = try Bulletin(tooLong.span).claims.number }
  }

  @Test func `the claims of a bulletin end where they say`() throws {
    let claims = TestBulletin(for: DeviceID(filledWith: 7)).encoded()
    let number = try BulletinClaims(claims.span).number
    #expect(number == 1000 * testTime)
    for bytes in [claims + [0xf6], claims + claims, claims.dropLast()] {
      #expect(throws: EncodingFault.malformed) { _ = try BulletinClaims(bytes.span).number }
    }
  }

  @Test func `without a round there is nothing, the owner has one check, and only a new round gives any`() {
    var stranger = MailAllowance()
    #expect(!stranger.hasCheck && !stranger.useCheck())
    var owner = MailAllowance.owner
    #expect(owner.useCheck() && !owner.useCheck())
    var peer = MailAllowance()
    peer.note(KeyID(filledWith: 1), isNew: true)
    #expect(peer.hasCheck && peer.useCheck() && !peer.useCheck())
    peer.note(KeyID(filledWith: 1), isNew: true)
    peer.note(KeyID(filledWith: 1), isNew: false)
    #expect(!peer.hasCheck && !peer.useCheck())
  }

  @Test func `a peer whose key has no list is refused, and the connection goes on`() throws {
    let device = try ExampleDevice()
    var prover = try Prover.with(try ExampleToken().token())
    #expect(try device.round(&prover).response.status == .accepted)
    try device.session.makeChallenge()
    for _ in 0..<2 {
      let status = device.session.answerMail(message(nil).span)
      #expect(status == .accepted && device.outgoing == "820805")
    }
    let keyID = try #require(device.store.issuers.keys.first)
    device.store.bulletins[keyID] = BulletinList([BulletinList.Row(audience: AudienceID(filledWith: 1), number: 2)])
    let status = device.session.answerMail(message(nil).span)
    #expect(status == .accepted && device.outgoing == "830800818250" + String(repeating: "01", count: 16) + "02")
  }

  @Test func `where the policy knows no bulletins, a round tells nothing of them, and mail is none`() throws {
    let device = try ExampleDevice()
    var request = Request(command: "unlock")
    request.number = 1
    var prover = try Prover.with(try ExampleToken().token(), request: request)
    #expect(try device.round(&prover).response.status == .accepted)
    #expect(device.store.rounds.map(\.tellsBulletins) == [false])
    try device.session.makeChallenge()
    let answer = device.session.respondToMail(message(nil).span)
    #expect(answer == nil)
  }

  private func isMail(_ bytes: [UInt8]) throws -> Bool { try MailMessage(bytes.span) != nil }

  @Test func `a list is in order whatever the order of its rows, and its state depends on each of them`() throws {
    var cryptography = OpenSSLCryptography()
    let rows = (1...3).map { BulletinList.Row(audience: AudienceID(filledWith: UInt8($0)), number: UInt64($0)) }
    let list = BulletinList(rows)
    #expect(BulletinList(rows.reversed()) == list)
    #expect(list.rows == rows)
    #expect(rows.map { list.number(for: $0.audience) } == [1, 2, 3])
    #expect(list.number(for: AudienceID(filledWith: 9)) == nil)
    var states = [try list.state(using: &cryptography)]
    for index in rows.indices {
      var others = rows
      others[index] = BulletinList.Row(audience: rows[index].audience, number: 9)
      states.append(try BulletinList(others).state(using: &cryptography))
      others.remove(at: index)
      states.append(try BulletinList(others).state(using: &cryptography))
    }
    #expect(Set(states).count == states.count)
  }
}
