import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

/// The limits of one bulletin, each at its last value and behind it.
@Suite struct BulletinLimitsTests {
  /// Tokens that have 27 bytes each in a bulletin, or 19 with `isShort`.
  private func tokens(_ count: Int, isShort: Bool = false) -> [TokenID: UInt64] {
    var random = TestRandom(state: 7)
    return Dictionary(
      uniqueKeysWithValues: (0..<count).map { _ in (try! random.fixedBytes(), isShort ? 1 : maximumInteger) })
  }

  private func keyIDs(_ count: Int) -> Set<KeyID> { Set((0..<count).map { KeyID(filledWith: UInt8($0)) }) }

  private func write(_ contents: BulletinContents) throws -> [IssuedBulletin] {
    var key = try P256PrivateKey()
    var random = TestRandom(state: 1)
    return try BulletinWriter(of: key.publicPoint).write(
      all: contents, for: AudienceID(filledWith: 7), after: maximumInteger - 50, isComplete: false,
      milliseconds: 1000 * testTime, key: &key, random: &random)
  }

  @Test func `one bulletin has at most 120 tokens, 16 versions and 32 users`() {
    for (count, fits) in [(120, true), (121, false)] {
      var contents = BulletinContents()
      contents.revoked = tokens(count, isShort: true)
      #expect(contents.fitsOneBulletin == fits, "\(count) tokens")
    }
    for (count, fits) in [(16, true), (17, false)] {
      var contents = BulletinContents()
      for number in 0..<count { contents.minimumVersions[BoundedText("app\(number)")!] = .zero }
      #expect(contents.fitsOneBulletin == fits, "\(count) versions")
    }
    for (count, fits) in [(32, true), (33, false)] {
      var contents = BulletinContents()
      for number in 0..<count { contents.users[BoundedText("user\(number)")!] = testTime }
      #expect(contents.fitsOneBulletin == fits, "\(count) users")
    }
  }

  /// The claims without tokens, keys and generation have 49 bytes with the longest stamp: the head of the map, three numbers with
  /// 10 bytes each, and the audience with 18. A list has two bytes in addition, that of a hundred tokens three; a key has nine.
  @Test func `the claims of one bulletin have at most 2,900 bytes, and 2,800 if it is sealed`() {
    var contents = BulletinContents()
    contents.revoked = tokens(100)
    contents.ended = keyIDs(16)
    contents.generation = 5
    #expect(contents.fitsOneBulletin, "49 + 2703 + 146 + 2 = 2900")
    contents.generation = 24
    #expect(!contents.fitsOneBulletin)
    contents.users = ["a": nil as UInt64?]
    contents.ended = keyIDs(4)
    contents.generation = 256
    #expect(contents.fitsOneBulletin, "49 + 2703 + 6 + 38 + 4 = 2800")
    contents.generation = 65536
    #expect(!contents.fitsOneBulletin)
  }

  @Test func `contents that fit are one bulletin, and a byte more makes several`() throws {
    for (count, parts) in [(0, 1), (1, 1), (100, 1), (102, 3), (250, 4)] {
      var contents = BulletinContents()
      contents.revoked = tokens(count)
      contents.generation = 3
      #expect(try write(contents).count == parts, "\(count) tokens")
    }
    var contents = BulletinContents()
    contents.revoked = tokens(100)
    contents.ended = keyIDs(4)
    contents.generation = maximumInteger
    #expect(try write(contents).count == 1, "49 + 2703 + 38 + 10 = 2800")
    contents.ended = keyIDs(5)
    contents.generation = 5
    #expect(try write(contents).count == 2, "49 + 2703 + 47 + 2 = 2801")
    contents = BulletinContents()
    contents.revoked = tokens(120, isShort: true)
    #expect(try write(contents).count == 1)
    contents.revoked = tokens(121, isShort: true)
    #expect(try write(contents).count == 2)
  }

  @Test func `a bulletin of 3072 bytes is written, and none of 3073`() throws {
    var key = try P256PrivateKey()
    let writer = try BulletinWriter(of: key.publicPoint)
    let stamp = BulletinStamp(after: 0, isComplete: true, milliseconds: 1, audience: AudienceID(filledWith: 7))
    /// The bytes with this many names of 34 bytes, which make 40 bytes each, and one name of another length.
    func write(_ count: Int, and nameByteCount: Int) throws -> Int {
      var contents = BulletinContents()
      for number in 100..<100 + count {
        contents.minimumVersions[BoundedText(String(repeating: "x", count: 31) + "\(number)")!] = .zero
      }
      contents.minimumVersions[BoundedText(String(repeating: "y", count: nameByteCount))!] = .zero
      var random = TestRandom(state: 1)
      return try writer.write(contents, stamp, key: &key, random: &random).count
    }
    var count = 50
    while try write(count, and: 24) <= 3072 - 40 { count += 1 }
    let rest = 3072 - (try write(count, and: 24))
    #expect((0..<40).contains(rest))
    #expect(try write(count, and: 24 + rest) == 3072)
    #expect(throws: BulletinFault.tooLong) { try write(count, and: 25 + rest) }
  }
}
