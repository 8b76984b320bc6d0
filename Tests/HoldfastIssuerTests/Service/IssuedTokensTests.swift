import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

/// The backend's record of its tokens.
@Suite struct IssuedTokensTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func records() throws -> IssuedBaselinesDatabase {
    try IssuedBaselinesDatabase(path: folder.file("issuer.sqlite"), creating: true)
  }

  private func token(
    _ id: UInt8, for device: UInt8 = 1, user: BoundedText<32>? = nil, issuedAt: UInt64 = 1000, expires: UInt64 = 2000
  ) -> IssuanceRecord {
    IssuanceRecord(
      baseline: Digest(), device: DeviceID(filledWith: device), tokenID: TokenID(filledWith: id),
      subject: BoundedText("app"), version: AppVersion(major: 1, minor: 2, patch: 3), user: user, generation: 4,
      issuedAt: issuedAt, expires: expires)
  }

  @Test func `tokens come back in their order, also in the next process, until they expire`() throws {
    let tokens = [token(9, user: BoundedText("alice")), token(3, for: 2), token(5, expires: 3000)]
    var records = try records()
    for token in tokens { try records.record(token) }
    #expect(try records.tokens(for: nil, now: 1000) == tokens)
    let next = try self.records()
    #expect(try next.tokens(for: nil, now: 1999) == tokens)
    #expect(try next.tokens(for: DeviceID(filledWith: 1), now: 1999) == [tokens[0], tokens[2]])
    #expect(try next.tokens(for: DeviceID(filledWith: 3), now: 1999).isEmpty)
    #expect(try next.tokens(for: nil, now: 2000) == [tokens[2]])
  }

  @Test func `a clock that was ahead has nothing forgotten, and no two tokens have one id`() throws {
    var records = try records()
    try records.record(token(1))
    try records.record(token(2, issuedAt: 9000, expires: 9999))
    #expect(throws: ServiceLedgerFault.self) { try records.record(token(2)) }
    #expect(try records.tokens(for: nil, now: 1000).map(\.tokenID) == [TokenID(filledWith: 1), TokenID(filledWith: 2)])
  }
}
