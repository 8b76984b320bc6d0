import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastProver

/// The bulletins that a prover carries: their limits, their order, and what becomes of a damaged file.
@Suite struct MailTests {
  private let device = AudienceID(filledWith: 1)
  private let group = AudienceID(filledWith: 2)
  private let other = AudienceID(filledWith: 3)

  private func bulletin(
    _ number: UInt64, after predecessor: UInt64 = 0, for audience: AudienceID? = nil, byteCount: Int = 100
  ) -> CarriedBulletin {
    CarriedBulletin(
      audience: audience ?? device, number: number, predecessor: predecessor,
      bytes: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: byteCount))
  }

  private func list(_ number: UInt64, _ groupNumber: UInt64 = 0) -> BulletinList {
    BulletinList([
      BulletinList.Row(audience: group, number: groupNumber), BulletinList.Row(audience: device, number: number),
    ])
  }

  /// The numbers of the bulletins that are delivered one after the other to a device that takes each.
  private func delivered(_ mail: Mail, byteLimit: Int = 16_384) -> [UInt64] {
    var (mail, numbers): (Mail, [UInt64]) = (mail, [])
    while let next = mail.next(byteLimit: byteLimit), numbers.count < 100 {
      numbers.append(next.number)
      mail.note(next)
    }
    return numbers
  }

  private func mail(_ bulletins: [CarriedBulletin], _ list: BulletinList?) -> Mail {
    var mail = Mail()
    mail.replace(by: bulletins)
    mail.list = list
    return mail
  }

  @Test func `bulletins are delivered in their order, those that the device does not have and can take`() {
    let bulletins = [
      bulletin(30, after: 20), bulletin(10), bulletin(20, after: 10), bulletin(15, for: group),
      bulletin(12, for: other),
      bulletin(50, after: 40),
    ]
    #expect(delivered(mail(bulletins, list(0))) == [10, 15, 20, 30])
    #expect(delivered(mail(bulletins, list(10))) == [15, 20, 30])
    #expect(delivered(mail(bulletins, list(20, 15))) == [30])
    #expect(delivered(mail(bulletins, list(40, 15))) == [50])
    #expect(delivered(mail(bulletins, list(60, 60))).isEmpty)
    #expect(delivered(mail(bulletins, nil)).isEmpty)
    #expect(delivered(mail([bulletin(20, after: 10)], list(0))).isEmpty)
  }

  @Test func `a bulletin beyond the bytes that are left is not delivered, and another one is`() {
    let bulletins = [bulletin(10, byteCount: 300), bulletin(15, for: group, byteCount: 100)]
    #expect(delivered(mail(bulletins, list(0)), byteLimit: 299) == [15])
    #expect(delivered(mail(bulletins, list(0)), byteLimit: 300) == [10, 15])
    #expect(delivered(mail(bulletins, list(0)), byteLimit: 99).isEmpty)
  }

  @Test func `of too many bulletins or bytes the newest are left out`() {
    let many = (1...20).map { bulletin(UInt64($0), after: UInt64($0 - 1)) }
    #expect(mail(many.reversed(), nil).bulletins.map(\.number) == Array(1...16))
    let long = (1...10).map { bulletin(UInt64($0), byteCount: 3072) }
    #expect(mail(long, nil).bulletins.map(\.number) == Array(1...5))
    #expect(mail([bulletin(1, byteCount: 3072)] + long, nil).bulletins.count == 5)
  }

  @Test func `what a device has leaves room for newer bulletins`() {
    let many = (1...40).map { bulletin(UInt64($0), after: UInt64($0 - 1)) } + [bulletin(41, for: other)]
    var mail = mail([], list(20))
    mail.replace(by: many)
    #expect(delivered(mail) == Array(21...36))
    mail.list = list(39)
    mail.replace(by: many)
    #expect(delivered(mail) == [40])
    // If the device turns out to have less, some of it is there.
    #expect(mail.bulletins.count == 16)
    mail.list = list(0)
    #expect(delivered(mail) == Array(1...15))
  }

  @Test func `what a device says that it has is kept until it has proved so`() {
    var mail = mail([bulletin(10), bulletin(15, for: group), bulletin(12, for: other)], list(0))
    mail.note(bulletin(10))
    #expect(mail.list == list(10))
    #expect(mail.bulletins.count == 3)
    #expect(mail.have == 0)
    mail.dropDelivered()
    #expect(mail.bulletins.map(\.number) == [15])
    mail.note(bulletin(15, for: group))
    mail.note(bulletin(3))
    #expect(mail.list == list(10, 15))
    #expect(mail.have == 10)
    var unknown = self.mail([bulletin(10)], nil)
    unknown.dropDelivered()
    #expect(unknown.bulletins.count == 1)
  }

  // Files

  private func enrolled() throws -> (TemporaryFolder, Prover, TestLock) {
    let place = try TemporaryFolder(in: memoryFolder)
    let (prover, lock) = (Prover(state: place.file("phone"), keys: .default), try TestLock())
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
    return (place, prover, lock)
  }

  @Test func `mail is in the folder of its device, and a damaged file is no mail`() throws {
    let (place, prover, lock) = try enrolled()
    defer { _ = place }
    let id = lock.descriptor.deviceID
    let folder = try prover.folder.requiredEntry(of: id).folder
    #expect(folder.mail() == Mail())
    #expect(try prover.store([bulletin(10), bulletin(20, after: 10)], for: id) == 2)
    var mail = folder.mail()
    mail.list = list(5, 7)
    try folder.write(mail)
    #expect(folder.mail() == mail)
    #expect(try prover.bulletinNumber(of: id) == 5)
    // The list outlives new bulletins.
    #expect(try prover.store([bulletin(30)], for: id) == 1)
    #expect(folder.mail().list == list(5, 7))
    #expect(throws: ProverError.self) { try prover.bulletinNumber(of: DeviceID(filledWith: 99)) }
    let text = String(decoding: try folder.read(Mail.fileName, limit: 65_536), as: UTF8.self)
    for (part, other) in [
      ("\"version\": 1", "\"version\": 2"), ("30", "\"30\""), ("\"bulletins\"", "\"bulletin\""),
      ("\"number\": 5", "\"number\": -5"),
      ("\"audience\": \"01", "\"audience\": \"0"), ("{", "["),
    ] {
      let damaged = text.replacing(part, with: other, maxReplacements: 1)
      #expect(damaged != text, "\(part)")
      try folder.write(Array(damaged.utf8), as: Mail.fileName)
      #expect(folder.mail() == Mail(), "\(part)")
    }
    for bytes in [[], [0xff], [UInt8](repeating: 0x20, count: 70_000)] as [[UInt8]] {
      try folder.write(bytes, as: Mail.fileName)
      #expect(folder.mail() == Mail())
    }
    // A service gives it again.
    #expect(try prover.store([bulletin(10)], for: id) == 1)
    #expect(folder.mail().bulletins == [bulletin(10)])
  }

  @Test func `an answer of a service is taken whole or not at all`() throws {
    let (place, prover, lock) = try enrolled()
    defer { _ = place }
    let id = lock.descriptor.deviceID
    func answer(_ elements: [JSONValue]) -> [UInt8] { JSONValue.object([("bulletins", .array(elements))]).pretty() }
    func isRefused(_ answer: [UInt8]) -> Bool {
      do throws(ProverError) { try prover.store(bulletins: answer, for: id) } catch {
        if case .malformedMail = error { return true }
      }
      return false
    }
    #expect(try prover.store(bulletins: answer([bulletin(10).json, bulletin(20).json]), for: id) == 2)
    let good = bulletin(30).json
    let bad: [[(String, JSONValue)]] = [
      [("audience", .string("01"))], [("number", .string("30"))], [("predecessor", .integer(30))],
      [("bulletin", .string("%"))],
    ]
    for changes in bad {
      let members = (good.members ?? []).map { member in changes.first { $0.0 == member.0 } ?? member }
      #expect(isRefused(answer([good, .object(members)])))
    }
    let long = bulletin(30, byteCount: 3073).json
    for bytes in [answer([long]), [], Array("{}".utf8), [UInt8](repeating: 0x20, count: 65_537)] {
      #expect(isRefused(bytes))
    }
    #expect(try prover.folder.requiredEntry(of: id).folder.mail().bulletins.map(\.number) == [10, 20])
    #expect(try prover.store(bulletins: answer([]), for: id) == 0)
  }
}
