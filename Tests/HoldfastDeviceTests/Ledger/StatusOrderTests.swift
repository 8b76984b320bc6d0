import HoldfastCore
import HoldfastDevice
import TestSupport
import Testing

/// The faults of a round, in the order in which docs/protocol.md lists their statuses.
enum RoundFault: Int, CaseIterable, Comparable {
  case brokenMessage, lateAnswer, untrustedIssuer, wrongDevice, wrongSeal, revoked, expired, oldVersion, usedUp
  case wrongIntegrity, unknownCommand, missingFactor, rejectedCode

  static func < (left: RoundFault, right: RoundFault) -> Bool { left.rawValue < right.rawValue }

  var status: Status {
    switch self {
    case .brokenMessage, .wrongSeal: .malformed
    case .lateAnswer: .challengeExpired
    case .untrustedIssuer: .tokenInvalid
    case .wrongDevice: .deviceMismatch
    case .revoked: .tokenRevoked
    case .expired: .tokenExpired
    case .oldVersion: .versionTooOld
    case .usedUp: .usesExhausted
    case .wrongIntegrity: .integrityMismatch
    case .unknownCommand: .commandRefused
    case .missingFactor: .factorMissing
    case .rejectedCode: .otpRejected
    }
  }

  static let pairs = allCases.flatMap { first in allCases.filter { first < $0 }.map { [first, $0] } }
}

@Suite struct StatusOrderTests {
  private func status(of faults: [RoundFault]) throws -> (status: Status, isSealed: Bool) {
    let device = try TestDevice(policy: policy(for: faults))
    let stranger = try TestIssuer()
    let prover = try device.prover(from: faults.contains(.untrustedIssuer) ? stranger : nil) { claims in
      if faults.contains(.usedUp) { claims.maximumUses = 0 }
    }
    if faults.contains(.expired) { device.clock.seconds = prover.claims.expires }
    var flaws: Flaws = []
    if faults.contains(.wrongDevice) { flaws.insert(.wrongDevice) }
    if faults.contains(.wrongSeal) { flaws.insert(.wrongSeal) }
    if faults.contains(.wrongIntegrity) { flaws.insert(.wrongIntegrity) }
    let otp = UserCode(user: BoundedText("ada"), code: BoundedText("123456"))
    let connection = try device.connect()
    var answer = try prover.answer(
      try connection.challenge(), command: command(for: faults), flaws: flaws,
      otp: faults.contains(.rejectedCode) ? otp : nil)
    if faults.contains(.brokenMessage) { answer.message.removeLast() }
    let message = connection.respond(
      answer.message, waitedMilliseconds: faults.contains(.lateAnswer) ? 30_001 : 30_000)
    let verdict = try prover.open(message, after: answer)
    #expect(device.lock.current == (verdict.status == .accepted ? .unlocked : .locked))
    return (verdict.status, verdict.result != nil)
  }

  private func command(for faults: [RoundFault]) -> String {
    if faults.contains(.unknownCommand) { return "open" }
    switch (faults.contains(.missingFactor), faults.contains(.rejectedCode)) {
    case (true, true): return "open-safe"
    case (true, false), (false, true): return "configure"
    case (false, false): return "unlock"
    }
  }

  private func policy(for faults: [RoundFault]) -> DevicePolicy {
    var limits = TokenLimits()
    if faults.contains(.revoked) { limits.generationFloor = 2 }
    if faults.contains(.oldVersion) { limits.minimumVersion = AppVersion(major: 1, minor: 0, patch: 0) }
    return DevicePolicy(
      commands: [
        BoundedText("unlock"): CommandRule(factors: [.integrity, .device], limits: limits),
        BoundedText("configure"): CommandRule(factors: [.integrity, .device, .otp], limits: limits),
        BoundedText("open-safe"): CommandRule(factors: .all, limits: limits),
      ], limits: limits)
  }

  @Test func `a round without a fault is accepted`() throws {
    #expect(try status(of: []) == (.accepted, true))
  }

  @Test(arguments: RoundFault.allCases) func `each fault has its status`(fault: RoundFault) throws {
    let outcome = try status(of: [fault])
    #expect(outcome.status == fault.status)
    #expect(outcome.isSealed == (fault >= .revoked))
  }

  @Test(arguments: RoundFault.pairs) func `of two faults the earlier one is told`(faults: [RoundFault]) throws {
    #expect(try status(of: faults).status == faults[0].status)
  }
}
