import HoldfastCore
import HoldfastDevice
import HoldfastTransport
import TestSupport
import Testing

/// Who keeps a place when all are taken. The clock stands still: a peer's time to prove itself passes when a test says so.
@Suite struct RoomForProversTests {
  private let threePlaces = ServerOptions(connectionCount: 3, timing: ServerTiming(answerMilliseconds: 600_000))

  @Test func `a newcomer gets the place of the peer that has been there longest without proving itself`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device, options: threePlaces)
    let prover = try device.prover()
    let proved = try served.connect()
    #expect(try proved.round(prover).status == .accepted)
    let oldest = try served.connect()
    _ = try oldest.challenge()
    let younger = try served.connect()
    let challenge = try younger.challenge()
    device.clock.advance(milliseconds: 2000)
    #expect(try served.connect().round(prover).status == .accepted)
    oldest.expectEnd()
    #expect(served.notices.wait(for: .displaced(connection: 2)))
    let answer = try prover.answer(challenge, command: "unlock")
    try younger.send(answer.message)
    #expect(try prover.open(try younger.receive(), after: answer).status == .accepted)
    #expect(try proved.round(prover).status == .accepted)
    try served.stop()
    #expect(!served.notices.all.contains(.disconnected(connection: 2)))
    let events = try device.ledger.auditEntries(limit: 100).map(\.event)
    #expect(events.contains(.unproved([.busy: 1])))
  }

  @Test func `a peer keeps its place for its time to prove itself, however many come`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device, options: threePlaces)
    let prover = try device.prover()
    let peers = try (0..<3).map { _ in try served.connect() }
    let challenges = try peers.map { try $0.challenge() }
    device.clock.advance(milliseconds: 1999)
    for _ in 0..<200 {
      let late = try served.connect()
      #expect(try late.unsealedStatus() == .busy)
      late.expectEnd()
    }
    for (peer, challenge) in zip(peers, challenges) {
      let answer = try prover.answer(challenge, command: "unlock")
      try peer.send(answer.message)
      #expect(try prover.open(try peer.receive(), after: answer).status == .accepted)
    }
    try served.stop()
  }

  @Test func `silent peers hold no place beyond their time, one after the other`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device, options: threePlaces)
    var silent: [TestPeer] = []
    for _ in 0..<20 {
      silent.append(try served.connect())
      _ = try silent[silent.count - 1].challenge()
      device.clock.advance(milliseconds: 2000)
      guard silent.count > 3 else { continue }
      silent[silent.count - 4].expectEnd()
      // Its thread has ended, too: a server has no more than two for each place.
      #expect(served.notices.wait(for: .displaced(connection: UInt64(silent.count - 3))))
    }
    #expect(try served.connect().round(try device.prover()).status == .accepted)
    try served.stop()
  }

  @Test func `a place is lost by whatever is not accepted, also under a seal`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    let cases: [(command: String, flaws: Flaws, status: Status, keepsPlace: Bool)] = [
      ("unlock", .asReference, .tokenUnknown, false), ("unlock", .wrongDevice, .deviceMismatch, false),
      ("unlock", .noDevice, .deviceMismatch, false), ("open", [], .commandRefused, false),
      ("unlock", .wrongIntegrity, .integrityMismatch, false), ("unlock", .noIntegrity, .factorMissing, false),
      ("unlock", [], .accepted, true),
    ]
    for (command, flaws, status, keepsPlace) in cases {
      let served = try ServedDevice(device, options: ServerOptions(connectionCount: 1))
      let peer = try served.connect()
      let answer = try prover.answer(try peer.challenge(), command: command, flaws: flaws)
      try peer.send(answer.message)
      #expect(try prover.open(try peer.receive(), after: answer).status == status)
      _ = try peer.challenge()
      device.clock.advance(milliseconds: 2000)
      let newcomer = try served.connect()
      if keepsPlace {
        #expect(try newcomer.unsealedStatus() == .busy, "after \(status)")
      } else {
        _ = try newcomer.challenge()
        peer.expectEnd()
      }
      try served.stop()
    }
  }

  @Test func `who has proved himself keeps his place until a later proof is wrong`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    let served = try ServedDevice(device, options: ServerOptions(connectionCount: 1))
    let peer = try served.connect()
    #expect(try peer.round(prover).status == .accepted)
    device.clock.advance(milliseconds: 2000)
    #expect(try served.connect().unsealedStatus() == .busy)
    try peer.send(try prover.answer(try peer.challenge(), command: "unlock", flaws: .wrongDevice).message)
    #expect(try peer.unsealedStatus() == .deviceMismatch)
    _ = try peer.challenge()
    #expect(try served.connect().round(prover).status == .accepted)
    peer.expectEnd()
    try served.stop()
  }

  @Test func `a peer whose answer is held back makes room at once`() throws {
    let device = try TestDevice()
    let timing = ServerTiming(greatestDelayMilliseconds: 60_000)
    let served = try ServedDevice(device, options: ServerOptions(connectionCount: 1, timing: timing))
    let prover = try device.prover()
    let peer = try served.connect()
    for number in 1...10 {
      try peer.send(try prover.answer(try peer.challenge(), command: "unlock", flaws: .wrongDevice).message)
      if number < 10 { #expect(try peer.unsealedStatus() == .deviceMismatch) }
    }
    #expect(served.notices.wait(for: .answered(connection: 1, .deviceMismatch), count: 10))
    device.clock.advance(milliseconds: 2000)
    #expect(try served.connect().round(prover).status == .accepted)
    #expect(served.notices.wait(for: .displaced(connection: 1)))
    try served.stop()
  }
}
