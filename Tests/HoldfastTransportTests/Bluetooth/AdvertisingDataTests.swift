import Testing

import HoldfastTransport

struct AdvertisingDataTests {
  private static let uuid: [UInt8] = HoldfastService.uuid.reversed()

  @Test func `what a device advertises is read again`() throws {
    var data = try #require(AdvertisingData(AdvertisingData.advertisement[...]))
    #expect(data.namesService && data.namesAllServices && data.psm == nil && data.name == nil)
    let response = AdvertisingData.scanResponse(psm: 0x80, name: "gate")
    let answer = try #require(AdvertisingData(response[...]))
    #expect(answer.psm == 0x80)
    data.merge(answer)
    #expect(data.name == "gate" && data.hasWholeName && data.namesService)
  }

  @Test func `an advertisement has the bytes of the protocol's document`() {
    #expect(
      AdvertisingData.advertisement == [
        0x11, 0x07, 0xcf, 0x5e, 0xa7, 0x79, 0x1b, 0xb9, 0xa7, 0xa8, 0xbb, 0x4a, 0x61, 0x28, 0x41, 0xfa, 0xab, 0xaf,
      ])
    #expect(AdvertisingData.scanResponse(psm: 0x81, name: "") == [0x12, 0x21] + Self.uuid + [0x81])
  }

  @Test(arguments: [
    ("0123456789", "0123456789", true), ("0123456789a", "0123456789", false), ("123456789é", "123456789", false),
    ("12345678é", "12345678é", true),
  ])
  func `a name is cut between characters, so that a scan response has at most 31 bytes`(
    name: String, sent: String, isWhole: Bool
  ) throws {
    let response = AdvertisingData.scanResponse(psm: 0x80, name: name)
    #expect(response.count <= 31)
    let data = try #require(AdvertisingData(response[...]))
    #expect(data.name == sent && data.hasWholeName == isWhole)
  }

  @Test(
    arguments: [
      [3, 0x09], [2, 0x09], [1], [255, 0x09, 0x41], [17, 0x07], [3, 0x07, 1, 2],
      [18, 0x07] + [UInt8](repeating: 1, count: 17),
      [16, 0x06] + [UInt8](repeating: 1, count: 15), [0, 1], [2, 0x09, 0x41, 0, 0, 2],
      [16, 0x21] + [UInt8](repeating: 1, count: 15),
      [250, 0x09] + [UInt8](repeating: 0x41, count: 249),
    ] as [[UInt8]])
  func `structures that are cut short, or of another size than their type has, make all of it malformed`(bytes: [UInt8])
  {
    #expect(AdvertisingData(bytes[...]) == nil)
  }

  @Test func `zeros after the last structure end it early`() throws {
    let data = try #require(AdvertisingData([2, 0x09, 0x41] + [UInt8](repeating: 0, count: 237)))
    #expect(data.name == "A")
    #expect(AdvertisingData([]) != nil)
  }

  @Test func `the first whole name is the name`() throws {
    let data = try #require(AdvertisingData([2, 0x08, 0x41, 2, 0x09, 0x42, 2, 0x09, 0x43, 2, 0x08, 0x44]))
    #expect(data.name == "B" && data.hasWholeName)
    let short = try #require(AdvertisingData([2, 0x08, 0x41, 2, 0x08, 0x42]))
    #expect(short.name == "A" && !short.hasWholeName)
  }

  @Test func `a whole name replaces a shortened one, and not the other way round`() throws {
    var data = try #require(AdvertisingData([2, 0x08, 0x41]))
    data.merge(try #require(AdvertisingData([2, 0x09, 0x42])))
    #expect(data.name == "B")
    data.merge(try #require(AdvertisingData([2, 0x08, 0x43])))
    #expect(data.name == "B")
  }

  @Test func `more than 240 bytes are read as extended advertising has them`() throws {
    let other: [UInt8] = [241, 0x07] + [UInt8](repeating: 7, count: 240)
    let data = try #require(AdvertisingData((other + [17, 0x06] + Self.uuid + [2, 0x09, 0x41])[...]))
    #expect(data.namesService && data.namesAllServices && data.name == "A")
  }

  @Test(arguments: [[], [0x00], [0x7f], [0x80, 0x00]] as [[UInt8]])
  func `what else stands beside our UUID is no PSM`(bytes: [UInt8]) throws {
    let data = try #require(AdvertisingData(([UInt8(17 + bytes.count), 0x21] + Self.uuid + bytes)[...]))
    #expect(data.psm == nil)
  }

  @Test func `the bytes of another service are not ours`() throws {
    let data = try #require(AdvertisingData(([17, 0x07] + HoldfastService.uuid)[...]))
    #expect(!data.namesService && data.namesAllServices)
  }
}
