import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

/// The bulletins that a service keeps for couriers.
@Suite struct IssuedBulletinsTests {
  private let place: TemporaryFolder
  private let folder: ServiceFolder
  private let device = DeviceID(filledWith: 1)
  private let group = AudienceID(filledWith: 2)

  init() throws {
    let parties = try Parties()
    let keys = parties.releaseKeys
    place = try TemporaryFolder()
    folder = try ServiceFolder.create(at: place.file("service"), releaseKeys: keys.span, policy: parties.policy)
  }

  /// Issues a bulletin, and returns the number of the one before it.
  private func issue(
    _ number: UInt64, for audience: AudienceID, isDevice: Bool, isComplete: Bool = false
  ) throws -> UInt64? {
    var before: UInt64?
    var issued = try folder.issuedBaselines()
    let made = try issued.issueBulletins(for: audience, isDevice: isDevice, isComplete: isComplete) { last in
      before = last
      let stamp = BulletinStamp(number: number, predecessor: isComplete ? 0 : last, issuedAt: 1, audience: audience)
      return [IssuedBulletin(stamp, [UInt8(truncatingIfNeeded: number)])]
    }
    #expect(made?.map(\.stamp.number) == [number])
    return before
  }

  private func numbers(for device: DeviceID) throws -> [UInt64] {
    try folder.issuedBaselines().bulletins(for: device).map(\.stamp.number)
  }

  @Test func `a device gets its own bulletins and those of all groups, in the order of their numbers`() throws {
    let audience = AudienceID(device.bytes)!
    #expect(try issue(10, for: audience, isDevice: true) == 0)
    #expect(try issue(5, for: group, isDevice: false) == 0)
    #expect(try issue(20, for: audience, isDevice: true) == 10)
    #expect(try issue(15, for: AudienceID(filledWith: 3), isDevice: true) == 0)
    #expect(try numbers(for: device) == [5, 10, 20])
    #expect(try numbers(for: DeviceID(filledWith: 9)) == [5])
    let last = try #require(try folder.issuedBaselines().bulletins(for: device).last)
    let stamp = BulletinStamp(number: 20, predecessor: 10, issuedAt: 1, audience: audience)
    #expect(last == IssuedBulletin(stamp, [20]))
  }

  @Test func `a complete bulletin takes the place of those of its audience, and its number rises all the same`() throws
  {
    let audience = AudienceID(device.bytes)!
    _ = try issue(10, for: audience, isDevice: true)
    _ = try issue(11, for: group, isDevice: false)
    _ = try issue(20, for: audience, isDevice: true)
    #expect(try issue(30, for: audience, isDevice: true, isComplete: true) == 20)
    #expect(try numbers(for: device) == [11, 30])
    #expect(try issue(40, for: audience, isDevice: true) == 30)
    #expect(try numbers(for: device) == [11, 30, 40])
  }

  @Test func `a bulletin that cannot be made leaves the others`() throws {
    let audience = AudienceID(device.bytes)!
    _ = try issue(10, for: audience, isDevice: true)
    var issued = try folder.issuedBaselines()
    let made = try issued.issueBulletins(for: audience, isDevice: true, isComplete: true) { _ in nil }
    #expect(made == nil)
    #expect(try numbers(for: device) == [10])
  }
}
