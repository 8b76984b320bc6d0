import HoldfastCore
import TestSupport
import Testing

import HoldfastAuthenticator

@Suite struct SynchronisationAdviceTests {
  let test: TestAuthenticator
  private let device = DeviceID(filledWith: 7)

  init() throws { test = try TestAuthenticator() }

  private func add(
    _ method: CodeMethod, _ purpose: RecordPurpose = .otp, of device: DeviceID?, window: UInt64 = 10
  ) throws {
    let record = NewRecord("alice", 1, purpose, method, secret: rfcSecret)
    let new = NewRecord(
      index: 1, purpose: purpose, credential: record.credential, deviceID: device, lookAheadWindow: window)
    try test.add([new], protection: .none)
  }

  private func advice(at seconds: UInt64 = testTime) throws -> SynchronisationAdvice {
    try test.authenticator.records()[0].synchronisationAdvice(now: seconds)
  }

  @Test func `half of the codes that a device searches ahead are a reason to synchronise, and all of them a duty`()
    throws
  {
    try add(.hotp(.sha1, .six), of: device)
    var advised: [SynchronisationAdvice] = [try advice()]
    for _ in 0..<10 {
      _ = try test.code()
      advised.append(try advice())
    }
    #expect(advised == Array(repeating: .notNeeded, count: 5) + Array(repeating: .advised, count: 5) + [.required])
    #expect(fault { _ = try test.code() } == .notSynchronised)
    #expect(try test.authenticator.records()[0].unseenCodeCount == 10)
    try test.authenticator.synchronise(
      user: "alice", deviceID: device, offsetSeconds: nil, otpNext: 10, sealNext: nil, now: testTime)
    #expect(try advice() == .notNeeded)
  }

  @Test func `clocks that were not compared for a month are a reason, and so is one that went back`() throws {
    try add(.totp, of: device)
    #expect(try advice() == .advised)
    try test.authenticator.synchronise(
      user: "alice", deviceID: device, offsetSeconds: 3, otpNext: 1, sealNext: nil, now: testTime)
    let month = Record.clockComparisonSeconds
    #expect(try advice() == .notNeeded)
    #expect(try advice(at: testTime + month - 1) == .notNeeded)
    #expect(try advice(at: testTime + month) == .advised)
    #expect(try advice(at: testTime - 1) == .advised)
  }

  @Test func `where a device searches no codes ahead, one with a counter is always synchronised first, and others not`()
    throws
  {
    try add(.hotp(.sha1, .six), of: device, window: 0)
    #expect(try advice() == .required)
    try test.authenticator.remove(user: "alice")
    try add(.totp, of: device, window: 0)
    #expect(try advice() == .advised)
    #expect(try !test.code().isEmpty)
  }

  @Test func `host codes and accounts of no device need none`() throws {
    try add(.totp, of: nil)
    #expect(try advice() == .notNeeded)
    try test.authenticator.remove(user: "alice")
    try add(.ocra("OCRA-1:HOTP-SHA256-8:QH16"), .host, of: device)
    #expect(try advice() == .notNeeded)
  }
}
