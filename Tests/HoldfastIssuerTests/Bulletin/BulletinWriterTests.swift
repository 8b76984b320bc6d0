import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

/// Bulletins of the writer, read by the core.
@Suite struct BulletinWriterTests {
  private let device = AudienceID(filledWith: 7)
  private let now = 1000 * testTime

  /// Writes contents, and returns them with the bytes; `last` is the number before.
  private func write(
    _ contents: BulletinContents, after last: UInt64 = 0, isComplete: Bool = true, sealedTo point: P256Point? = nil
  ) throws -> [IssuedBulletin] {
    var key = try P256PrivateKey()
    var random = TestRandom(state: 1)
    return try BulletinWriter(of: key.publicPoint).write(
      all: contents, for: device, after: last, isComplete: isComplete, milliseconds: now, sealedTo: point, key: &key,
      random: &random)
  }

  private func tokens(_ count: Int, until time: UInt64 = maximumInteger) -> [TokenID: UInt64] {
    var random = TestRandom(state: 7)
    return Dictionary(uniqueKeysWithValues: (0..<count).map { _ in (try! random.fixedBytes(), time) })
  }

  @Test func `everything that was written is read, and its signature is right`() throws {
    var key = try P256PrivateKey()
    var random = TestRandom(state: 1)
    var cryptography = OpenSSLCryptography()
    let other = try P256PrivateKey().publicPoint
    var contents = BulletinContents()
    contents.revoked = tokens(3)
    contents.generation = 5
    contents.minimumVersions = [
      "b": AppVersion(major: 1, minor: 2, patch: 3), "aa": AppVersion(major: 4, minor: 0, patch: 0),
    ]
    contents.introduced = [IntroducedKey(point: other, from: 1, until: 2)]
    contents.ended = [KeyID(filledWith: 9), KeyID(filledWith: 1)]
    let stamp = BulletinStamp(after: 17, isComplete: false, milliseconds: now + 5, audience: device)
    let bytes = try BulletinWriter(of: key.publicPoint).write(contents, stamp, key: &key, random: &random)
    let bulletin = try Bulletin(bytes.span)
    let claims = try bulletin.verified(by: key.publicPoint, using: &cryptography).claims
    #expect((claims.number, claims.predecessor, claims.issuedAt) == (now + 5, 17, testTime))
    #expect((claims.audience, claims.generation) == (device, 5))
    var revoked: [TokenID: UInt64] = [:]
    claims.revoked.forEach { revoked[$0.tokenID] = $0.until }
    #expect(revoked == contents.revoked)
    var versions: [BoundedText<64>: AppVersion] = [:]
    claims.versions.forEach { versions[$0.subject] = $0.version }
    #expect(versions == contents.minimumVersions)
    var (introduced, ended): ([IntroducedKey], Set<KeyID>) = ([], [])
    claims.introduced.forEach { introduced.append($0) }
    claims.ended.forEach { ended.insert($0.keyID) }
    #expect((introduced, ended) == (contents.introduced, contents.ended))
    #expect(claims.users.count == 0)
    #expect(throws: CryptographyFailure.self) { _ = try Bulletin(bytes.span).verified(by: other, using: &cryptography) }
  }

  @Test func `users are named only under a seal, which the device opens`() throws {
    var key = try P256PrivateKey()
    var contents = BulletinContents()
    contents.users = ["bob": nil as UInt64?, "alice": testTime]
    #expect(throws: BulletinFault.notSealed) { try write(contents) }
    let bytes = try #require(try write(contents, sealedTo: key.publicPoint).first).bytes
    let isSealed = Bulletin.isSealed(bytes.span)
    #expect(isSealed)
    var opener = TokenOpener()
    var cryptography = OpenSSLCryptography()
    let keyID = try keyID(of: key.publicPoint, using: &cryptography)
    try opener.decryptCOSE(bytes.span, key: &key, keyID: keyID, using: &cryptography)
    let claims = try Bulletin(opener.plaintext.bytes, sealedTo: DeviceID(device.bytes)).claims
    var users: [String] = []
    claims.users.forEach { users.append("\($0.user.description) \($0.until ?? 0)") }
    #expect(users == ["alice \(testTime)", "bob 0"])
    #expect(throws: EncodingFault.unexpected) { try Bulletin(opener.plaintext.bytes).claims.number }
    #expect(throws: EncodingFault.unexpected) {
      try Bulletin(opener.plaintext.bytes, sealedTo: DeviceID(filledWith: 8)).claims.number
    }
  }

  @Test(arguments: [0, 1, 100, 101, 120, 121, 250, 1000], [false, true])
  func `any number of tokens goes in parts, each the predecessor of the next`(count: Int, isSealed: Bool) throws {
    var contents = BulletinContents()
    contents.revoked = tokens(count)
    contents.generation = 3
    let bulletins = try write(
      contents, after: now + 40, isComplete: false, sealedTo: isSealed ? P256PrivateKey().publicPoint : nil)
    #expect(bulletins.map(\.stamp.predecessor) == [now + 40] + bulletins.dropLast().map(\.stamp.number))
    #expect(zip(bulletins, bulletins.dropFirst()).allSatisfy { $0.stamp.number < $1.stamp.number })
    #expect(bulletins.allSatisfy { $0.bytes.count <= Bulletin.maximumByteCount })
    guard !isSealed else { return }
    var (revoked, generations): ([TokenID: UInt64], [UInt64]) = ([:], [])
    for bulletin in bulletins {
      let claims = try Bulletin(bulletin.bytes.span).claims
      #expect((claims.number, claims.predecessor) == (bulletin.stamp.number, bulletin.stamp.predecessor))
      claims.revoked.forEach { revoked[$0.tokenID] = $0.until }
      if let generation = claims.generation { generations.append(generation) }
    }
    #expect(revoked == contents.revoked)
    #expect(generations == [3])
  }

  @Test func `tokens that leave no room for what else is said go before it`() throws {
    var contents = BulletinContents()
    contents.revoked = tokens(60)
    for index in 10..<26 {
      contents.minimumVersions[BoundedText(String(repeating: "x", count: 62) + String(index))!] = AppVersion(
        major: maximumInteger, minor: 0, patch: 0)
    }
    let bulletins = try write(contents)
    #expect(bulletins.count == 2)
    #expect(try bulletins.map { try versionCount($0) } == [0, 16])
    // What does not fit even so is not written.
    for index in 26..<60 {
      contents.minimumVersions[BoundedText(String(repeating: "x", count: 62) + String(index))!] = .zero
    }
    #expect(throws: BulletinFault.tooLong) { try write(contents) }
  }

  private func versionCount(_ bulletin: IssuedBulletin) throws -> Int {
    try Bulletin(bulletin.bytes.span).claims.versions.count
  }

  @Test func `a number rises with the time, and without it`() {
    func stamp(after last: UInt64, isComplete: Bool = false) -> BulletinStamp {
      BulletinStamp(after: last, isComplete: isComplete, milliseconds: now, audience: device)
    }
    #expect(stamp(after: 0).number == now)
    #expect(stamp(after: now).number == now + 1)
    #expect(stamp(after: now + 7).number == now + 8)
    #expect(stamp(after: now + 7).issuedAt == testTime)
    #expect(stamp(after: 5).predecessor == 5)
    #expect(stamp(after: 5, isComplete: true).predecessor == 0)
  }
}
