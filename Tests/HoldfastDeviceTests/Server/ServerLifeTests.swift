import Foundation
import HoldfastCore
import HoldfastDevice
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import TestSupport
import Testing

@Suite struct ServerLifeTests {
  @Test func `64 connections are served, the 65th is told to come again, and a freed place is taken`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device)
    let prover = try device.prover()
    var peers: [TestPeer] = []
    for _ in 0..<64 { peers.append(try served.connect()) }
    for peer in peers { #expect(try peer.round(prover, "status").status == .accepted) }
    let late = try served.connect()
    #expect(try late.unsealedStatus() == .busy)
    late.expectEnd()
    #expect(served.notices.all.contains(.busy))
    peers.removeFirst()
    #expect(served.notices.wait(for: .disconnected(connection: 1)))
    var status = Status.busy
    let deadline = Deadline(afterMilliseconds: TestPeer.patienceMilliseconds)
    while status == .busy, !deadline.hasPassed {
      guard let verdict = try? served.connect().round(prover) else { continue }
      status = verdict.status
    }
    #expect(status == .accepted)
    #expect(try peers[62].round(prover, "status").status == .accepted)
    try served.stop()
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
    let totals = try device.ledger.auditEntries(limit: 1000).compactMap { entry -> UnauthenticatedTotals? in
      if case .unproved(let totals) = entry.event { totals } else { nil }
    }
    #expect(totals.contains { $0[.busy] > 0 })
  }

  @Test func `a stop ends every connection, enters the totals and leaves one complete ledger file`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device)
    let prover = try device.prover()
    let working = try served.connect()
    #expect(try working.round(prover).status == .accepted)
    _ = try working.challenge()
    let silent = try served.connect()
    _ = try silent.challenge()
    for _ in 0..<3 {
      let stranger = try served.connect()
      _ = try stranger.challenge()
      try stranger.send([0xff])
      #expect(try stranger.unsealedStatus() == .malformed)
      stranger.expectEnd()
    }
    try served.stop()
    working.expectEnd()
    silent.expectEnd()
    #expect(throws: TransportError.notFound) { try served.connect() }
    let last = try device.ledger.auditEntries(limit: 100).suffix(2).map(\.event)
    #expect(last == [.unproved([.malformed: 2]), .stopped])
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
  }

  @Test func `a stop does not wait for an answer that is held back`() throws {
    let device = try TestDevice()
    device.clock.seconds = testTime
    let (ours, theirs) = try Connection.pair()
    let served = try ServedDevice(device, listeners: [OnePeer(StagedChannel(ours))])
    let prover = try device.prover()
    let peer = TestPeer(theirs)
    for number in 1...10 {
      let answer = try prover.answer(try peer.challenge(), command: "unlock", flaws: .wrongDevice)
      try peer.send(answer.message)
      if number < 10 { #expect(try peer.unsealedStatus() == .deviceMismatch) }
    }
    #expect(served.notices.wait(for: .answered(connection: 1, .deviceMismatch), count: 10))
    let clock = SystemClock()
    let start = clock.monotonicMilliseconds()
    try served.stop()
    #expect(clock.monotonicMilliseconds() - start < 30_000)
    peer.expectEnd()
  }

  @Test func `no listener is closed while a thread accepts at it`() throws {
    let device = try TestDevice()
    let listener = try SlowToLeave()
    let served = try ServedDevice(device, listeners: [listener])
    #expect(listener.isAccepting.wait(milliseconds: 60_000))
    try served.stop()
    #expect(listener.isClosed.isRaised && !listener.wasClosedTooEarly.isRaised)
  }

  @Test func `a server that was stopped before it ran ends at once`() throws {
    let device = try TestDevice()
    let server = try DeviceServer(
      try device.opened(), actuator: LockActuator(device.lock),
      at: [Endpoint(parsing: "unix:\(device.place.path)/socket")])
    server.stop()
    server.stop()
    try server.run()
  }

  @Test func `one server serves a folder, and the next one once it has ended`() throws {
    let device = try TestDevice()
    do {
      let served = try ServedDevice(device)
      #expect(throws: DeviceFolderFault.folder(FileError(.locked, at: device.folder.path))) {
        _ = try ServedDevice(device, scheme: "unix-stream")
      }
      try served.stop()
    }
    let next = try ServedDevice(device)
    try next.stop()
    let events = try device.ledger.auditEntries(after: 2, limit: 10).map(\.event)
    #expect(events.count == 5)
    #expect(events.first == .started(bootCount: 1))
    #expect(events.last == .stopped)
  }

  @Test func `an endpoint that is taken is named, and the start does not count`() throws {
    let device = try TestDevice()
    let other = try TestDevice(seed: 2)
    let served = try ServedDevice(device)
    #expect(throws: ServerFault.endpoint(served.endpoint, .addressInUse)) {
      _ = try DeviceServer(try other.opened(), actuator: LockActuator(other.lock), at: [served.endpoint])
    }
    #expect(try other.ledger.summary().bootCount == 0)
    try served.stop()
  }

  @Test func `a key file that went bad is named`() throws {
    let device = try TestDevice()
    try Data("{}".utf8).write(to: URL(fileURLWithPath: DeviceFile.key.path(in: device.folder.path)))
    #expect(throws: DeviceFolderFault.file(.key, .corrupt)) { _ = try ServedDevice(device) }
  }

  @Test func `a ledger that fails ends rounds with internal and no connection but its own`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device)
    let prover = try device.prover()
    let peer = try served.connect()
    #expect(try peer.round(prover, "status").status == .accepted)
    try device.tamper("CREATE TRIGGER fault BEFORE INSERT ON audit BEGIN SELECT raise(ABORT, ''); END")
    #expect(try peer.round(prover, "unlock").status == .internal)
    try device.tamper("DROP TRIGGER fault")
    #expect(try peer.round(prover, "status").result == "locked")
    // The server makes a challenge as soon as the round before it ends: it has come before the ledger is spoilt.
    _ = try peer.challenge()
    try device.tamper("UPDATE state SET clock_floor = -1")
    try peer.send([0xff])
    #expect(try peer.unsealedStatus() == .malformed)
    let next = try served.connect()
    next.expectEnd()
    #expect(served.notices.wait(for: .fault(connection: 2, .store)))
    try device.tamper("UPDATE state SET clock_floor = ?", .unsigned(testTime))
    #expect(try served.connect().round(prover, "status").result == "locked")
    try served.stop()
  }
}

/// A listener at which accepting ends a moment after it is cancelled.
private final class SlowToLeave: ChannelListener {
  let isAccepting, isCancelled, isClosed, wasClosedTooEarly: WakeUp

  init() throws {
    (isAccepting, isCancelled) = (try WakeUp(), try WakeUp())
    (isClosed, wasClosedTooEarly) = (try WakeUp(), try WakeUp())
  }

  func acceptChannel() throws(TransportError) -> any MessageChannel {
    isAccepting.raise()
    isCancelled.wait(milliseconds: nil)
    if isClosed.wait(milliseconds: 200) { wasClosedTooEarly.raise() }
    throw .cancelled
  }

  func cancel() { isCancelled.raise() }

  func close() { isClosed.raise() }
}
