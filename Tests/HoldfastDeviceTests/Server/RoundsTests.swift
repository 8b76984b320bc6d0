import Foundation
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastTransport
import TestSupport
import Testing

@Suite struct ServerRoundsTests {
  @Test(arguments: ["unix", "unix-stream"])
  func `a connection is any number of rounds`(scheme: String) throws {
    let device = try TestDevice()
    let served = try ServedDevice(device, scheme: scheme)
    let prover = try device.prover()
    let peer = try served.connect()
    #expect(try peer.round(prover, "status").result == "locked")
    #expect(try peer.round(prover, "unlock").result == "unlocked")
    #expect(try peer.round(prover, "status", flaws: .asReference).result == "unlocked")
    #expect(try peer.round(prover, "open").status == .commandRefused)
    #expect(try peer.round(prover, "lock").result == "locked")
    try served.stop()
  }

  @Test(arguments: [(UInt64(29_000), Status.accepted), (31_000, .challengeExpired)])
  func `how long an answer took is told by the device's clock`(milliseconds: UInt64, status: Status) throws {
    let device = try TestDevice(clock: TestClock(stepMilliseconds: milliseconds))
    let served = try ServedDevice(device)
    #expect(try served.connect().round(try device.prover()).status == status)
    try served.stop()
  }

  @Test func `no challenge comes twice: not on a connection, not on another, not after a restart`() throws {
    let device = try TestDevice()
    var challenges: Set<[UInt8]> = []
    for _ in 0..<3 {
      let served = try ServedDevice(device)
      for _ in 0..<3 {
        let peer = try served.connect()
        for _ in 0..<3 {
          let message = try peer.challenge()
          challenges.insert(Array(try Challenge(message.span).nonce))
          try peer.send(try device.prover().answer(message, command: "status", flaws: .wrongDevice).message)
          #expect(try peer.unsealedStatus() == .deviceMismatch)
        }
      }
      try served.stop()
    }
    #expect(challenges.count == 27)
    #expect(try device.ledger.summary().bootCount == 3)
  }

  @Test func `a restart forgets tokens and keeps uses`() throws {
    let device = try TestDevice()
    let prover = try device.prover { $0.maximumUses = 2 }
    let first = try ServedDevice(device)
    #expect(try first.connect().round(prover).status == .accepted)
    #expect(try first.connect().round(prover, flaws: .asReference).status == .accepted)
    try first.stop()
    let second = try ServedDevice(device)
    let peer = try second.connect()
    #expect(try peer.round(prover, flaws: .asReference).status == .tokenUnknown)
    #expect(try peer.round(prover).status == .usesExhausted)
    #expect(try peer.round(try device.prover(), "status").result == "unlocked")
    try second.stop()
  }

  @Test func `the policy file is followed from round to round, and without one all is refused`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device)
    let prover = try device.prover()
    let peer = try served.connect()
    #expect(try peer.round(prover).status == .accepted)
    try device.folder.write(.denyAll)
    #expect(try peer.round(prover).status == .commandRefused)
    let path = DeviceFile.policy.path(in: device.folder.path)
    try Data("{".utf8).write(to: URL(fileURLWithPath: path))
    #expect(try peer.round(prover).status == .commandRefused)
    try FileManager.default.removeItem(atPath: path)
    #expect(try peer.round(prover).status == .commandRefused)
    try device.folder.write(.forSimulatedLock)
    #expect(try peer.round(prover).status == .accepted)
    try served.stop()
    let faults = served.notices.all.compactMap { notice -> PolicyFault?? in
      if case .policy(let reading) = notice { .some(reading.fault) } else { nil }
    }
    let noJSON = JSONMistake(at: [], expected: .syntax, line: 1)
    #expect(faults == [nil, nil, .malformed(noJSON), .unreadable, nil])
  }

  @Test func `a policy that changes after the challenge counts for its answer`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device)
    let prover = try device.prover()
    let peer = try served.connect()
    let answer = try prover.answer(try peer.challenge(), command: "unlock")
    try device.folder.write(.denyAll)
    try peer.send(answer.message)
    #expect(try prover.open(try peer.receive(), after: answer).status == .commandRefused)
    try served.stop()
  }

  @Test func `trust given and taken by the owner counts in the next round`() throws {
    let device = try TestDevice()
    let other = try TestIssuer()
    let served = try ServedDevice(device)
    let prover = try device.prover(from: other)
    let peer = try served.connect()
    #expect(try peer.round(prover).status == .tokenInvalid)
    let owner = try device.folder.openLedger()
    try owner.trust(.signing(other.point), realClock: testTime)
    #expect(try peer.round(prover).status == .accepted)
    try owner.removeTrust(try other.keyID(), realClock: testTime)
    #expect(try peer.round(prover, flaws: .asReference).status == .tokenInvalid)
    try served.stop()
  }

  @Test func `the longest token is judged on a connection's small stack`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device)
    let prover = try device.prover()
    prover.token = Array(repeating: 0x5a, count: 3072)
    let peer = try served.connect()
    #expect(try peer.round(prover).status == .tokenInvalid)
    try served.stop()
  }
}
