import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastAuthenticator

/// Accounts of other services, as an app imports and exports them.
@Suite struct AccountsTests {
  private let test: TestAuthenticator
  private let uri = "otpauth://hotp/shop:eve?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=shop&counter=0"

  init() throws { test = try TestAuthenticator() }

  private func take(_ text: String, _ protection: borrowing ProtectionSecret = .none) throws -> [Record] {
    var random = TestRandom(state: 1)
    return try test.authenticator.importAccounts(Array(text.utf8).span, protection: protection, random: &random)
  }

  private func uri(of record: Record, _ protection: borrowing ProtectionSecret = .none) throws -> String {
    try test.authenticator.withExportedAccount(of: record, with: protection) { uri in
      String(decoding: (0..<uri.count).map { uri[$0] }, as: UTF8.self)
    }
  }

  @Test func `an imported account makes its codes, and is exported with its next counter`() throws {
    let record = try #require(try take(uri).first)
    #expect((record.user, record.index, record.issuer, record.purpose) == ("eve", 1, "shop", .otp))
    #expect(
      try test.authenticator.code(for: record, with: .none, clock: TestClock(seconds: nil)).text == "755224")
    let exported = try uri(of: record)
    #expect(exported.hasPrefix("otpauth://hotp/shop:eve?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&"))
    #expect(exported.hasSuffix("&counter=1"))
  }

  @Test func `several lines are imported together, or none of them`() throws {
    let other = uri.replacing("GEZDGNBV", with: "MZXW6YTB")
    #expect(fault { _ = try take("\(uri)\n\(other)\notpauth://hotp/x?secret=1") } == .malformedAccount)
    #expect(try test.authenticator.records().isEmpty)
    #expect(try take("\(uri)\n\(other)").map(\.index) == [1, 2])
    #expect(try take(uri.replacing("GEZDGNBV", with: "MFRGGZDF")).map(\.index) == [3])
  }

  @Test(arguments: ["", "eve", "otpauth://motp/eve?secret=MFRGG", "<?xml version=\"1.0\"?>", "MFRGGZDFMFRGGZDF"])
  func `other text is no account`(_ text: String) throws {
    #expect(fault { _ = try take(text) } == .malformedAccount)
  }

  @Test func `a container is no account, however right it is`() throws {
    let text = ContainerText(packages: [ContainerText.key()]).text
    #expect(try read(text, .pskc).count == 1)
    #expect(fault { _ = try take(text) } == .malformedAccount)
    #expect(try test.authenticator.records().isEmpty)
  }

  @Test func `what cannot be exported says why`() throws {
    try test.add(NewRecord("bob", 1, .otp, .ocra("OCRA-1:HOTP-SHA1-6:QN08")), NewRecord("bob", 2, .seal, .usualSeal))
    for record in try test.authenticator.records() {
      #expect(fault { _ = try uri(of: record) } == .unsuitableMethod)
    }
  }
}
