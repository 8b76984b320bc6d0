import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastAuthenticator

/// The protection that a device's owner demands, and records that wait for the device.
@Suite struct DemandTests {
  private let test: TestAuthenticator
  private let demand = ProtectionDemand(pinLength: 5, needsKey: true)!

  init() throws { test = try TestAuthenticator() }

  private func records(_ demand: ProtectionDemand?, secret: [UInt8] = randomSecret) -> [NewRecord] {
    [
      NewRecord(
        index: 1, purpose: .otp,
        credential: Credential(user: "alice", method: .hotp(.sha1, .six), secret: SecretBytes(copying: secret.span)),
        demand: demand)
    ]
  }

  private func both(_ digits: String, _ byte: UInt8 = 7) throws -> ProtectionSecret {
    ProtectionSecret(pin: try PIN(digits), key: ExternalKey([UInt8](repeating: byte, count: 32).span)!)
  }

  private func change(from old: borrowing ProtectionSecret, to new: borrowing ProtectionSecret) throws {
    let record = try test.authenticator.record(user: "alice", purpose: .otp)
    var random = TestRandom(state: 5)
    try test.authenticator.checkChange(of: record, from: old, to: new)
    let code = try test.authenticator.prepareChange(of: record, random: &random)
    try test.authenticator.change(record, from: old, to: new, under: code, random: &random)
  }

  @Test func `weaker protection than demanded is refused before anything is stored`() throws {
    #expect(fault { try test.add(records(demand), protection: .none) } == .demanded(demand))
    #expect(fault { try test.add(records(demand), protection: pin("482915")) } == .demanded(demand))
    #expect(fault { try test.add(records(demand), protection: key(7)) } == .demanded(demand))
    #expect(fault { try test.add(records(demand), protection: both("4829")) } == .demanded(demand))
    #expect(try test.authenticator.records().isEmpty)
    try test.add(records(demand), protection: both("48291"))
    #expect(try test.again().records().map(\.demand) == [demand])
  }

  @Test func `no later change falls below the demand, and the secret is not exported`() throws {
    try test.add(records(demand), protection: both("48291"))
    #expect(fault { try change(from: both("48291"), to: pin("482915")) } == .demanded(demand))
    #expect(fault { try change(from: key(7), to: .none) } == .demanded(demand))
    #expect(fault { try change(from: both("48291"), to: both("7362")) } == .demanded(demand))
    #expect(fault { try change(from: both("48291"), to: .none) } == .demanded(demand))
    #expect(try test.authenticator.records().map(\.change) == [.none])
    let record = try test.authenticator.record(user: "alice", purpose: .otp)
    var random = TestRandom(state: 6)
    // Also by a caller that does not ask first.
    let code = try test.authenticator.prepareChange(of: record, random: &random)
    #expect(
      fault { try test.authenticator.change(record, from: both("48291"), to: .none, under: code, random: &random) }
        == .demanded(demand))
    #expect(fault { _ = try test.authenticator.credential(of: record, with: both("48291")) } == .demanded(demand))
    let before = try test.code(with: both("48291"))
    try change(from: key(7), to: key(8))
    #expect(try test.code(with: both("48291", 8)) != before)
    try test.authenticator.confirmProtection(user: "alice")
    try change(from: both("48291", 8), to: both("73620", 8))
  }

  @Test func `a state string keeps the demand, and one without demands is that of earlier versions`() throws {
    func exported(_ source: TestAuthenticator) throws -> String {
      var random = TestRandom(state: 9)
      return try source.authenticator.exportState(
        under: Passphrase(Array("three words here".utf8).span), cost: .test, random: &random)
    }
    try test.add(records(demand), protection: both("48291"))
    let other = try TestAuthenticator()
    try other.authenticator.importState(
      Array(exported(test).utf8).span, under: Passphrase(Array("three words here".utf8).span))
    #expect(try other.authenticator.records() == test.authenticator.records())
    var (with, without): ([UInt8], [UInt8]) = ([], [])
    let stored = try test.authenticator.stored("alice", 1)
    stored.encode(into: &with)
    let plain = try TestAuthenticator()
    try plain.add(records(nil), protection: both("48291"))
    try plain.authenticator.stored("alice", 1).encode(into: &without)
    #expect(with[0] == 0x96 && without[0] == 0x95)
  }

  @Test func `records that replace others wait until the device has confirmed them`() throws {
    try test.add(records(nil), protection: pin("1357"))
    let before = try test.authenticator.records()
    var random = TestRandom(state: 7)
    #expect(
      fault {
        _ = try test.authenticator.store(records(nil), protection: pin("2468"), replacing: false, random: &random)
      } == .exists)
    let fresh = records(demand, secret: rfcSecret)
    #expect(
      fault { _ = try test.authenticator.store(fresh, protection: pin("24680"), replacing: true, random: &random) }
        == .demanded(demand))
    #expect(try test.authenticator.store(fresh, protection: both("73629"), replacing: true, random: &random))
    #expect(try test.again().records() == before)
    #expect(try test.again().waitingRecords(of: "alice").map(\.demand) == [demand])
    _ = try test.code(with: pin("1357"))
    let device = DeviceID([UInt8](repeating: 1, count: 16).span)!
    #expect(try test.authenticator.completeReplacement(of: "alice", deviceID: device))
    #expect(try !test.authenticator.completeReplacement(of: "alice", deviceID: device))
    #expect(try test.authenticator.records().map(\.isConfirmed) == [true])
    #expect(try test.code(with: both("73629")) == "755224")
    #expect(try test.authenticator.waitingRecords(of: "alice").isEmpty)
    #expect(!test.fileContents().isEmpty)
  }

  @Test func `removing the user or importing a state removes what waits`() throws {
    var random = TestRandom(state: 8)
    try test.add(records(nil), protection: .none)
    _ = try test.authenticator.store(
      records(nil, secret: rfcSecret), protection: .none, replacing: true, random: &random)
    try test.authenticator.remove(user: "alice")
    #expect(try test.authenticator.waitingRecords(of: "alice").isEmpty)
  }
}
