import HoldfastLinux
import Synchronization
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// A prover at a connection, each used by one thread.
private final class Racer: @unchecked Sendable {
  let connection: TestConnection
  let prover: TestProver

  init(_ device: TestDevice, number: Int) throws {
    connection = try device.connect(number: UInt64(number))
    prover = try device.prover()
  }

  func ask(_ code: UserCode) throws -> Status { try connection.round(prover, otp: code).status }
}

/// Several processes, or connections, with one code.
@Suite struct RacingTests {
  /// Devices in the same folder, each with a ledger of its own, as processes have.
  private func processes(_ count: Int, of device: TestDevice) throws -> [TestDevice] {
    try (0..<count).map { _ in
      let other = try TestDevice(opening: device.folder.path, in: device.place, issuer: device.issuer)
      other.requireCodes()
      return other
    }
  }

  /// How often each status came when all go at once.
  private func statuses(
    _ count: Int, _ body: @escaping @Sendable (Int) throws -> Status
  ) throws -> [Status: Int] {
    let totals = Mutex<[Status: Int]>([:])
    let crowd = try Crowd()
    for index in 0..<count {
      crowd.start {
        let status = try body(index)
        totals.withLock { $0[status, default: 0] += 1 }
      }
    }
    crowd.wait()
    return totals.withLock { $0 }
  }

  @Test(arguments: [true, false])
  func `of those who come with one password at once, one is accepted`(isOneProcess: Bool) throws {
    for round: UInt64 in 0..<5 {
      let device = try TestDevice()
      device.requireCodes()
      try device.add()
      let others = isOneProcess ? Array(repeating: device, count: 4) : try processes(4, of: device)
      let racers = try others.enumerated().map { try Racer($1, number: $0 + 1) }
      let code = try password(round)
      let totals = try statuses(4) { try racers[$0].ask(code) }
      #expect(totals[.accepted] == 1 && totals[.otpRejected] == 3, "\(totals)")
      #expect(try device.record()?.accounts[.otp]?.nextPosition == round + 1)
    }
  }

  @Test func `of those who come with one activation code at once, one is activated`() throws {
    for _ in 0..<5 {
      let device = try TestDevice()
      let text = try device.ledger.issue()
      let racers = try processes(4, of: device).enumerated().map { try Racer($1, number: $0 + 1) }
      let totals = try statuses(4) { index in
        var visitor = TestVisitor()
        return try visitor.use(text, at: racers[index].connection, seed: UInt64(index)) ? .accepted : visitor.status
      }
      #expect(totals == [.accepted: 1, .otpRejected: 3], "\(totals)")
      #expect(try device.ledger.users().count == 1)
      #expect(try device.ledger.verifyAudit().firstBroken == nil)
    }
  }

  @Test func `guesses that come at once are all counted`() throws {
    let device = try TestDevice()
    try device.add()
    let racers = try processes(8, of: device).enumerated().map { try Racer($1, number: $0 + 1) }
    let totals = try statuses(8) { try racers[$0].ask(UserCode(user: ann, code: BoundedText("000000"))) }
    #expect(totals == [.otpRejected: 5, .lockedOut: 3], "\(totals)")
    #expect(try device.record()?.failureCount == 5)
  }
}
