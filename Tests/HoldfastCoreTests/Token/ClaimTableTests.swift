import Testing

import HoldfastCore

@Suite struct ClaimTableTests {
  private let claims = Array(Claim.all)

  @Test func `names and labels are unique, and find their claims`() throws {
    #expect(claims.count == 14)
    #expect(Set(claims.map { "\($0.name)" }).count == claims.count)
    #expect(Set(claims.map(\.vectorName)).count == claims.count)
    for claim in claims {
      #expect(Claim(label: claim.label) == claim)
      let json = Array("\"\(claim.name)\"".utf8)
      var reader = try JSONReader(json.span)
      let name = try reader.string()
      #expect(Claim(name: name) == claim)
    }
    #expect(Claim(label: 5) == nil)
  }

  @Test func `the cases are in the order of their labels in deterministic CBOR`() throws {
    var order = CBORLabelOrder()
    for claim in claims { try order.advance(to: claim.label) }
  }

  /// Two claims at one place would overwrite each other, and a place beyond the arrays would stop the device.
  @Test func `each claim has its own place, and the arrays have no place too many`() {
    let empty = MeasurementClaims()
    let kinds = claims.map(\.row.kind)
    #expect(Set(kinds).count == kinds.count)
    let places = { (place: (Claim.Kind) -> Int?) in kinds.compactMap(place).sorted() }
    #expect(places { if case .text64(let place) = $0 { place } else { nil } } == Array(empty.texts64.indices))
    #expect(places { if case .text32(let place) = $0 { place } else { nil } } == Array(empty.texts32.indices))
    #expect(places { if case .number(let place) = $0 { place } else { nil } } == Array(empty.numbers.indices))
    #expect(places { if case .secret32(let place) = $0 { place } else { nil } } == [0, 1])
    #expect(claims.count <= UInt32.bitWidth)
  }

  @Test func `what is set reads back by claim, and a claim of another type cannot be set`() throws {
    let values: [Claim: ClaimValue] = [
      .issuer: .text("an issuer"), .subject: .text("an app"), .expires: .number(9), .issuedAt: .number(8),
      .generation: .number(7), .maximumUses: .number(0), .commands: .texts([]), .user: .text("ada"),
      .version: .version(AppVersion(major: 1, minor: 2, patch: 3)),
    ]
    var claims = MeasurementClaims()
    for (claim, value) in values { try claims.set(claim, to: value) }
    let set = claims.values
    #expect(set == values)
    #expect(throws: EncodingFault.unexpected) { try claims.set(.user, to: .number(1)) }
    try claims.set(.expires, to: .number(maximumInteger))
    #expect(throws: EncodingFault.unexpected) { try claims.set(.expires, to: .number(maximumInteger + 1)) }
    #expect(throws: EncodingFault.unexpected) { try claims.set(.tokenID, to: .bytes(Array(repeating: 0, count: 16))) }
    // What is written is a map of as many claims.
    var bytes: [UInt8] = []
    claims.appendCBOR(to: &bytes)
    var reader = CBORReader(bytes.span)
    #expect(try reader.mapHead() == values.count)
    for _ in values { for _ in 0..<2 { try reader.skip() } }
    try reader.finish()
    try claims.set(.version, to: .version(.zero))
    let version = claims[.version]
    #expect(version == nil)
    claims.removeAll()
    let none = claims.values
    #expect(none.isEmpty)
    let isAllowed = claims.allows(BoundedText("unlock" as StaticString))
    #expect(isAllowed)
  }
}
