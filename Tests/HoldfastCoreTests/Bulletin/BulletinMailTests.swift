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
