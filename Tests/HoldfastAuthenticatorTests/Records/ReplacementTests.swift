import HoldfastCore
import TestSupport
import Testing

import HoldfastAuthenticator

/// New secrets that wait for a device to confirm them.
@Suite struct ReplacementTests {
  private static let oldHost = Array(randomSecret.reversed())
  private static let newSecret = Array("new, 20 random bytes".utf8)

  private let test: TestAuthenticator
  private let device = DeviceID(filledWith: 7)

  init() throws {
    test = try TestAuthenticator()
    try test.add(records(randomSecret, host: Self.oldHost), protection: .none)
  }

  /// A record for codes and one for the device's codes.
  private func records(_ secret: [UInt8], host: [UInt8]) -> [NewRecord] {
    let records = [
      NewRecord(secret: secret), NewRecord("alice", 3, .host, .ocra("OCRA-1:HOTP-SHA256-8:QH16"), secret: host),
    ]
    return records.map {
      NewRecord(index: $0.index, purpose: $0.purpose, credential: $0.credential, deviceID: device)
    }
  }

  private func store() throws {
    var random = TestRandom(state: 4)
    let isWaiting = try test.authenticator.store(
      records(Self.newSecret, host: rfcSecret), protection: .none, replacing: true, random: &random)
    #expect(isWaiting)
  }

  @Test func `what waits is not confirmed, and is so once it has taken its place`() throws {
    try store()
    #expect(try test.again().waitingRecords(of: "alice").map(\.isConfirmed) == [false, false])
    #expect(try test.authenticator.completeReplacement(of: "alice", deviceID: device))
    #expect(try test.again().records().map(\.isConfirmed) == [true, true])
  }

  @Test func `where there is nothing to replace, records are stored and wait for nothing`() throws {
    let empty = try TestAuthenticator()
    var random = TestRandom(state: 4)
    let isWaiting = try empty.authenticator.store(
      records(Self.newSecret, host: rfcSecret), protection: .none, replacing: false, random: &random)
    #expect(!isWaiting)
    #expect(try empty.authenticator.records().map(\.isConfirmed) == [false, false])
    #expect(try empty.authenticator.waitingRecords(of: "alice").isEmpty)
  }

  @Test func `a user's records wait for nothing because another user has some`() throws {
    var random = TestRandom(state: 4)
    let isWaiting = try test.authenticator.store(
      [NewRecord("bob", 1, secret: Self.newSecret)], protection: .none, replacing: false, random: &random)
    #expect(!isWaiting)
    #expect(try test.authenticator.waitingRecords(of: "bob").isEmpty)
  }

  @Test func `of the secrets that are replaced, nothing is left in the files`() throws {
    try store()
    for old in [randomSecret, Self.oldHost] { #expect(test.fileContents().contains(bytes: old)) }
    try test.authenticator.completeReplacement(of: "alice", deviceID: device)
    for old in [randomSecret, Self.oldHost] { #expect(!test.fileContents().contains(bytes: old)) }
    for new in [Self.newSecret, rfcSecret] { #expect(test.fileContents().contains(bytes: new)) }
  }

  // The code was made in Python, only from RFC 6287.
  @Test func `a device shows by a code over both challenges that it has the secrets that wait`() throws {
    func isShown(_ code: String = "39026226", by device: DeviceID? = nil) throws -> Bool {
      try test.authenticator.isOfWaitingRecords(
        code, user: "alice", device: device ?? self.device, challenge: DeviceChallenge("0123456789abcdef")!,
        deviceChallenge: DeviceChallenge("fedcba9876543210")!)
    }
    #expect(try !isShown(), "nothing waits")
    try store()
    #expect(try isShown())
    for wrong in ["39026227", "3902622", ""] { #expect(try !isShown(wrong)) }
    #expect(try !isShown(by: DeviceID(filledWith: 8)))
    try test.authenticator.completeReplacement(of: "alice", deviceID: device)
    #expect(try !isShown(), "nothing waits any more")
  }

  @Test func `a device's clock is applied to what waits, but not to counters and to the device's codes`() throws {
    var random = TestRandom(state: 4)
    var timed = [NewRecord("alice", 1, .otp, .totp, secret: Self.newSecret)]
    timed.append(NewRecord("alice", 2, secret: Array("counted, 20 random b".utf8)))
    timed += records(Self.newSecret, host: rfcSecret).suffix(1)
    _ = try test.authenticator.store(timed, protection: .none, replacing: true, random: &random)
    try test.authenticator.synchroniseWaiting(user: "alice", offsetSeconds: -5, now: testTime)
    let waiting = try test.authenticator.waitingRecords(of: "alice")
    #expect(waiting.map(\.clockOffsetSeconds) == [-5, 0, 0])
    #expect(waiting.map(\.lastSynchronised) == [testTime, testTime, nil])
    for (offset, now) in [(1 << 32, testTime), (-1 << 32, testTime), (0, 1 << 53)] as [(Int64, UInt64)] {
      #expect(
        fault { try test.authenticator.synchroniseWaiting(user: "alice", offsetSeconds: offset, now: now) }
          == .badRecord)
    }
    try test.authenticator.synchroniseWaiting(user: "alice", offsetSeconds: nil, now: maximumInteger)
    let latest = try test.authenticator.waitingRecords(of: "alice")
    #expect(latest.map(\.lastSynchronised) == [maximumInteger, maximumInteger, nil])
  }
}
