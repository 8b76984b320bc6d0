import HoldfastCore
import HoldfastDevice
import TestSupport
import Testing

@Suite struct ClockFloorTests {
  private let day: UInt64 = 86_400

  @Test func `the floor starts at the real clock and is in the challenge`() throws {
    let device = try TestDevice()
    device.clock.seconds = nil
    let atStart = try device.connect().challenge()
    #expect(try Challenge(atStart.span).clock == testTime)
    device.clock.seconds = testTime + 7
    let later = try device.connect().challenge()
    #expect(try Challenge(later.span).clock == testTime + 7)
  }

  @Test func `it rises to the iat of a signed token whose holder proved the device, even when denied`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let newer = try device.prover { $0.issuedAt = testTime + 100 }
    #expect(try connection.round(newer, flaws: .wrongDevice).status == .deviceMismatch)
    #expect(try device.ledger.summary().clockFloor == testTime)
    #expect(try connection.round(newer, "open").status == .commandRefused)
    #expect(try device.ledger.summary().clockFloor == testTime + 100)
    #expect(try connection.round(try device.prover()).status == .accepted)
    #expect(try device.ledger.summary().clockFloor == testTime + 100)
  }

  @Test func `without a clock a token expires by the floor`() throws {
    let device = try TestDevice()
    device.clock.seconds = nil
    let connection = try device.connect()
    let short = try device.prover { $0.expires = testTime + 50 }
    #expect(try connection.round(short).status == .accepted)
    #expect(try connection.round(try device.prover { $0.issuedAt = testTime + 50 }).status == .accepted)
    let denied = try connection.round(short)
    #expect(denied.status == .tokenExpired)
    #expect(denied.notice?.clock == testTime + 50)
  }

  @Test func `an iat more than 400 days above the floor is invalid and moves nothing`() throws {
    let device = try TestDevice()
    device.clock.seconds = nil
    let connection = try device.connect()
    let limit = testTime + 400 * day
    let beyond = try device.prover { ($0.issuedAt, $0.expires) = (limit + 1, limit + 2) }
    #expect(try connection.round(beyond).status == .tokenInvalid)
    #expect(try device.ledger.summary().clockFloor == testTime)
    let within = try device.prover { ($0.issuedAt, $0.expires) = (limit, limit + 1) }
    #expect(try connection.round(within).status == .accepted)
    #expect(try device.ledger.summary().clockFloor == limit)
  }

  @Test func `an iat more than a day ahead of the real clock is invalid and moves nothing`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let beyond = try device.prover { ($0.issuedAt, $0.expires) = (testTime + day + 1, testTime + 2 * day) }
    #expect(try connection.round(beyond).status == .tokenInvalid)
    #expect(try device.ledger.summary().clockFloor == testTime)
    let within = try device.prover { ($0.issuedAt, $0.expires) = (testTime + day, testTime + 2 * day) }
    #expect(try connection.round(within).status == .accepted)
  }

  @Test func `a real clock that went back does not bring an expired token to life`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let short = try device.prover { $0.expires = testTime + 50 }
    #expect(try connection.round(try device.prover { $0.issuedAt = testTime + 50 }).status == .accepted)
    device.clock.seconds = 1000
    #expect(try connection.round(short).status == .tokenExpired)
    device.clock.seconds = testTime
    #expect(try connection.round(short).status == .tokenExpired)
  }

  @Test func `a real clock that lost the time at a power cut keeps nobody out, and lets nobody push the floor`() throws
  {
    let device = try TestDevice()
    device.clock.seconds = 0
    let connection = try device.connect()
    #expect(try connection.round(try device.prover { $0.issuedAt = testTime }).status == .accepted)
    let beyond = try device.prover { ($0.issuedAt, $0.expires) = (testTime + 1, testTime + day) }
    #expect(try connection.round(beyond).status == .tokenInvalid)
    #expect(try device.ledger.summary().clockFloor == testTime)
    device.clock.seconds = testTime
    #expect(try connection.round(beyond).status == .accepted)
  }

  @Test func `tokens that follow each other do not get further than a day ahead of the real clock`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let first = try device.prover { ($0.issuedAt, $0.expires) = (testTime + day, testTime + 3 * day) }
    #expect(try connection.round(first).status == .accepted)
    let second = try device.prover { ($0.issuedAt, $0.expires) = (testTime + day + 1, testTime + 3 * day) }
    #expect(try connection.round(second).status == .tokenInvalid)
    #expect(try device.ledger.summary().clockFloor == testTime + day)
  }

  @Test func `a token older than policy allows is expired`() throws {
    let device = try TestDevice()
    device.policy.commands[BoundedText("unlock")]?.limits.maximumAgeSeconds = 60
    let prover = try device.prover()
    let connection = try device.connect()
    device.clock.seconds = testTime + 60
    #expect(try connection.round(prover).status == .accepted)
    device.clock.seconds = testTime + 61
    #expect(try connection.round(prover).status == .tokenExpired)
    #expect(try connection.round(prover, "status").status == .accepted)
  }
}
