import Foundation
import HoldfastCore
import HoldfastDevice
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport
import Testing

/// The cost of a session over a connection of one's own, compared with the core by itself. These tests measure, and run only on request:
/// `HOLDFAST_SPEED=1 swift test --configuration release --filter SessionSpeedTests`.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["HOLDFAST_SPEED"] != nil))
struct SessionSpeedTests {
  @Test func `a session makes at least 97 of 100 rounds that the core makes`() throws {
    let device = try TestDevice()
    device.clock.seconds = testTime
    let open = try device.opened()
    var session = try open.session(actuator: LockActuator(device.lock))
    // The core by itself, with the same parts.
    let policy = SessionPolicy()
    policy.current = device.policy
    let secrets = try device.folder.secrets()
    var core = DeviceSession<LinuxEnvironment<DeviceSecrets, SystemRandom, TestClock>>(
      deviceID: device.folder.descriptor.deviceID, keyID: device.folder.descriptor.keyID,
      cryptography: OpenSSLCryptography(), key: try secrets.key(),
      store: SessionStore(ledger: device.ledger, memory: device.memory, clock: device.clock, policy: policy),
      policy: policy, random: SystemRandom(), clock: device.clock,
      challenges: ChallengeSource(seed: secrets.challengeSeed(), bootCount: 1, connection: 1000))
    var actuator = LockActuator(device.lock)
    let prover = try device.prover()
    var (coreTime, sessionTime): ([UInt64], [UInt64]) = ([], [])
    for number in 0..<2000 {
      var start = monotonicNanoseconds()
      try core.makeChallenge()
      let first = core.challenge.array
      var time = monotonicNanoseconds() - start
      let answer = try prover.answer(first, command: "status")
      start = monotonicNanoseconds()
      _ = core.respond(to: answer.message.span, waitedMilliseconds: 0, actuator: &actuator)
      let reply = core.outgoing.array
      time += monotonicNanoseconds() - start
      try #require(try prover.open(reply, after: answer).status == .accepted)

      start = monotonicNanoseconds()
      let second = try session.challenge()
      var other = monotonicNanoseconds() - start
      let next = try prover.answer(second, command: "status")
      start = monotonicNanoseconds()
      let verdict = session.respond(to: next.message.span, waitedMilliseconds: 0)
      other += monotonicNanoseconds() - start
      try #require(try prover.open(verdict.message, after: next).status == .accepted)
      if number >= 100 {
        coreTime.append(time)
        sessionTime.append(other)
      }
    }
    let (coreMedian, sessionMedian) = (
      coreTime.sorted()[coreTime.count / 2], sessionTime.sorted()[sessionTime.count / 2]
    )
    print(
      "core: \(coreMedian) ns a round; session: \(sessionMedian) ns; rounds: \(Double(coreMedian) / Double(sessionMedian))"
    )
    #expect(Double(coreMedian) / Double(sessionMedian) >= 0.97)
  }
}
