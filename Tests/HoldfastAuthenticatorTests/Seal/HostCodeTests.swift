import HoldfastCore
import TestSupport
import Testing

import HoldfastAuthenticator

@Suite struct HostCodeTests {
  let test: TestAuthenticator
  let deviceChallenge = DeviceChallenge("fedcba9876543210")!

  init() throws {
    test = try TestAuthenticator()
    try test.add([NewRecord("alice", 3, .host, .ocra("OCRA-1:HOTP-SHA256-8:QH16"))], protection: pin("1357"))
  }

  private var record: Record {
    get throws { try test.authenticator.record(purpose: .host) }
  }

  /// As if this had been drawn.
  private func setChallenge() throws {
    try test.authenticator.tables.database.run("UPDATE records SET client_challenge = '0123456789abcdef'")
  }

  private func check(_ code: String) throws -> Bool {
    try test.authenticator.checkHostCode(code, deviceChallenge: deviceChallenge, of: record)
  }

  // Made in Python, only from RFC 6287.
  @Test func `the device's code is the right one, once`() throws {
    try setChallenge()
    #expect(try check("39026226"))
    #expect(throws: AuthenticatorFault.noChallenge) { try check("39026226") }
  }

  @Test func `a wrong code uses the challenge up too`() throws {
    try setChallenge()
    #expect(try !check("39026227"))
    #expect(throws: AuthenticatorFault.noChallenge) { try check("39026226") }
  }

  @Test func `what is no code of the suite costs nothing`() throws {
    try setChallenge()
    for code in ["", "3902622", "390262266", "3902622x", "39026226 "] {
      #expect(throws: AuthenticatorFault.badQuestion) { try check(code) }
    }
    #expect(try check("39026226"))
  }

  @Test func `challenges are 16 digits, fresh, and recorded before they are shown`() throws {
    var random = TestRandom()
    let first = try test.authenticator.challengeDevice(record, random: &random)
    let second = try test.authenticator.challengeDevice(record, random: &random)
    #expect(first != second)
    #expect(try test.again().stored("alice", 3).clientChallenge == second.digits)
  }

  @Test func `an activation that was never confirmed lets its device be asked`() throws {
    let other = try TestAuthenticator()
    try other.add(NewRecord("alice", 3, .host, .ocra("OCRA-1:HOTP-SHA256-8:QH16")), isConfirmed: false)
    try other.authenticator.tables.database.run("UPDATE records SET client_challenge = '0123456789abcdef'")
    let record = try other.authenticator.record(purpose: .host)
    #expect(try other.authenticator.checkHostCode("39026226", deviceChallenge: deviceChallenge, of: record))
    var random = TestRandom()
    _ = try other.authenticator.challengeDevice(record, random: &random)
  }

  @Test func `a host's record is stored without a PIN: a device's code would test one`() throws {
    #expect(try record.protection == .none)
  }
}
