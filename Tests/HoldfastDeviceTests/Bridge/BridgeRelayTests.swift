import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import TestSupport
import Testing

import HoldfastDevice

@Suite struct BridgeRelayTests {
  @Test(arguments: ["unix", "unix-stream"], ["unix", "unix-stream"])
  func `provers prove themselves to a device through a bridge, one after the other`(
    front: String, other: String
  ) throws {
    let device = try TestDevice()
    let served = try ServedDevice(device, scheme: "unix-stream")
    let endpoints = try [front, other].enumerated().map {
      try Endpoint(parsing: "\($0.element):\(device.place.path)/front\($0.offset)")
    }
    let bridge = try Bridge(endpoints: endpoints, hardware: served.endpoint, timing: .patient())
    let crowd = try Crowd()
    crowd.start { try bridge.run() }
    let prover = try device.prover()
    for endpoint in endpoints + endpoints {
      let (peer, first) = try firstRound(of: prover, at: endpoint)
      #expect(first.result == "unlocked")
      #expect(try peer.round(prover, "lock").result == "locked")
    }
    bridge.stop()
    crowd.wait()
    try served.stop()
  }

  @Test func `the longest messages go both ways unchanged`() throws {
    let line = try BridgedLine()
    let hardware = try line.hardware()
    let messages = [1, 672, 4096].map { count in (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) } }
    let peer = try line.connect(hardware, challenge: messages[2])
    for message in messages {
      try peer.send(message)
      #expect(try hardware.peer.receive() == message)
      try hardware.peer.send(message + (message.count < 4096 ? [7] : []))
      #expect(try peer.receive().starts(with: message))
      try hardware.peer.send([9, UInt8(truncatingIfNeeded: message.count)])
      #expect(try peer.receive().first == 9)
    }
    #expect(line.stop())
  }

  @Test func `no message of a prover is passed on before the challenge that follows a verdict`() throws {
    let line = try BridgedLine()
    let hardware = try line.hardware()
    let peer = try line.connect(hardware, challenge: [1])
    let unknown: [UInt8] = [0x83, 0x03, 0x06, 0xf6]
    for byte: UInt8 in 2...4 { try peer.send([byte]) }
    for byte: UInt8 in 2...3 {
      #expect(try hardware.peer.receive() == [byte])
      try hardware.peer.send(unknown)
      #expect(try peer.receive() == unknown)
      #expect(throws: TransportError.timedOutWaiting) {
        try hardware.peer.connection.receive(by: Deadline(afterMilliseconds: 100), wholeWithin: 1000)
      }
      try hardware.peer.send([1, byte])
      #expect(try peer.receive() == [1, byte])
    }
    #expect(try hardware.peer.receive() == [4])
    #expect(line.stop())
  }

  @Test func `what the hardware said before the answer to the empty frame reaches nobody`() throws {
    let line = try BridgedLine()
    let hardware = try line.hardware()
    for stale: UInt8 in 1...3 { try hardware.peer.send([stale]) }
    let peer = try line.connect()
    hardware.expectEmptyFrame()
    for stale: UInt8 in 4...6 { try hardware.peer.send([stale]) }
    try hardware.sendEmptyFrame()
    try hardware.peer.send([42])
    #expect(try peer.receive() == [42])
    #expect(line.stop())
  }

  @Test func `a prover that leaves in the middle of a round leaves nothing to the next`() throws {
    let line = try BridgedLine()
    let hardware = try line.hardware()
    var first: TestPeer? = try line.connect(hardware, challenge: [1])
    try first?.send([2])
    #expect(try hardware.peer.receive() == [2])
    first = nil
    #expect(line.notices.wait(for: .disconnected(connection: 1, messageCount: 1)))
    let second = try line.connect()
    hardware.expectEmptyFrame()
    // The answer to the first prover's message, and a challenge that was meant for it.
    try hardware.peer.send([3])
    try hardware.peer.send([4])
    try hardware.sendEmptyFrame()
    try hardware.peer.send([5])
    #expect(try second.receive() == [5])
    #expect(line.stop())
  }

  @Test func `provers that leave before the hardware answers cost it one empty frame`() throws {
    let line = try BridgedLine()
    let hardware = try line.hardware()
    for number: UInt64 in 1...5 {
      _ = try line.connect()
      #expect(line.notices.wait(for: .disconnected(connection: number, messageCount: 0)))
    }
    let peer = try line.connect()
    #expect(line.notices.wait(for: .connected(connection: 6, .process(userID: getuid(), processID: getpid()))))
    hardware.expectEmptyFrame()
    try hardware.sendEmptyFrame()
    try hardware.peer.send([1])
    #expect(try peer.receive() == [1])
    try peer.send([2])
    // No second empty frame lies before the message.
    #expect(try hardware.peer.receive() == [2])
    #expect(line.stop())
  }

  @Test func `a hardware that is asked twice gives the next prover its last challenge, and no other`() throws {
    let crowd = try Crowd()
    // All at once, because each waits for the time after which the second empty frame comes.
    for script in [Self.answerLate, Self.loseOne, Self.forgetOne, Self.answerNobody] { crowd.start { try script() } }
    crowd.wait()
  }

  /// A line where the second empty frame comes after ten seconds, which a busy machine needs for what follows.
  private static func lineThatAsksTwice(settlingMilliseconds: Int = 100) throws -> BridgedLine {
    try BridgedLine(
      timing: .patient { ($0.freshMilliseconds, $0.settlingMilliseconds) = (10_000, settlingMilliseconds) })
  }

  @Sendable private static func answerLate() throws {
    let line = try lineThatAsksTwice(settlingMilliseconds: 600_000)
    let hardware = try line.hardware()
    let peer = try line.connect()
    for _ in 0..<2 { hardware.expectEmptyFrame() }
    for byte: UInt8 in 1...2 {
      try hardware.sendEmptyFrame()
      try hardware.peer.send([byte])
    }
    #expect(try peer.receive() == [2])
    try peer.send([3])
    #expect(try hardware.peer.receive() == [3])
    #expect(line.stop())
  }

  @Sendable private static func loseOne() throws {
    let line = try lineThatAsksTwice()
    let hardware = try line.hardware()
    let peer = try line.connect()
    hardware.expectEmptyFrame()
    try hardware.answerEmptyFrame(with: [1])
    #expect(try peer.receive() == [1])
    try peer.send([2])
    #expect(try hardware.peer.receive() == [2])
    #expect(line.stop())
  }

  /// A question that nobody waited for does not count against the next prover.
  @Sendable private static func forgetOne() throws {
    let line = try lineThatAsksTwice()
    let hardware = try line.hardware()
    _ = try line.connect()
    hardware.expectEmptyFrame()
    #expect(line.notices.wait(for: .disconnected(connection: 1, messageCount: 0)))
    // Its time is over.
    _ = poll(nil, 0, 10_000)
    let peer = try line.connect()
    for _ in 0..<2 { hardware.expectEmptyFrame() }
    try hardware.sendEmptyFrame()
    try hardware.peer.send([1])
    #expect(try peer.receive() == [1])
    #expect(line.stop())
  }

  /// An answer that came while no prover was there shows that the hardware is not silent.
  @Sendable private static func answerNobody() throws {
    let line = try lineThatAsksTwice()
    let hardware = try line.hardware()
    do {
      let first = try line.connect()
      for _ in 0..<2 { hardware.expectEmptyFrame() }
      first.connection.shutdown()
    }
    #expect(line.notices.wait(for: .disconnected(connection: 1, messageCount: 0)))
    try hardware.sendEmptyFrame()
    try hardware.peer.send([1])
    let second = try line.connect()
    try hardware.answerEmptyFrame(with: [2])
    #expect(try second.receive() == [2])
    #expect(line.stop())
  }

  @Test func `a silent hardware is asked again, however soon each prover makes room for the next`() throws {
    let line = try BridgedLine(timing: .patient { $0.freshMilliseconds = 3000 })
    let hardware = try line.hardware()
    let deadline = Deadline(afterMilliseconds: TestPeer.patienceMilliseconds)
    var number: UInt64 = 0
    for _ in 0..<2 {
      while !hardware.hasArrived, !deadline.hasPassed {
        number += 1
        _ = try line.connect()
        #expect(line.notices.wait(for: .disconnected(connection: number, messageCount: 0)))
      }
      hardware.expectEmptyFrame()
    }
    #expect(line.stop())
  }

  @Test func `a hardware that still answers a prover who has left is not silent`() throws {
    let line = try BridgedLine(timing: .patient { $0.freshMilliseconds = 200 })
    let hardware = try line.hardware()
    do {
      let first = try line.connect(hardware, challenge: [1])
      try first.send([2])
      #expect(try hardware.peer.receive() == [2])
    }
    #expect(line.notices.wait(for: .disconnected(connection: 1, messageCount: 1)))
    let second = try line.connect()
    hardware.expectEmptyFrame()
    _ = poll(nil, 0, 1000)
    #expect(!hardware.hasArrived)
    for message: [UInt8] in [[3], [4]] { try hardware.peer.send(message) }
    try hardware.sendEmptyFrame()
    try hardware.peer.send([5])
    #expect(try second.receive() == [5])
    #expect(line.stop())
  }

  @Test func `repetitions of a challenge are dropped, before and after the prover has it`() throws {
    let line = try BridgedLine()
    let hardware = try line.hardware()
    let peer = try line.connect(hardware, challenge: [1, 1])
    for _ in 0..<3 { try hardware.peer.send([1, 1]) }
    try peer.send([2])
    #expect(try hardware.peer.receive() == [2])
    try hardware.peer.send([1, 1])
    try hardware.peer.send([3])
    #expect(try peer.receive() == [3])
    #expect(line.stop())
  }

  @Test func `a prover's own empty frame is passed on, and so is its answer`() throws {
    let line = try BridgedLine(scheme: "unix-stream")
    let hardware = try line.hardware()
    let peer = try line.connect(hardware, challenge: [1])
    try peer.connection.sendEmptyFrame(by: Deadline(afterMilliseconds: TestPeer.patienceMilliseconds))
    try hardware.answerEmptyFrame(with: [2])
    #expect(throws: TransportError.emptyFrame) { try peer.receive() }
    #expect(try peer.receive() == [2])
    #expect(line.stop())
  }

  @Test func `a terminal carries messages as a socket does`() throws {
    let terminal = try SerialLine()
    let place = try TemporaryFolder()
    let front = try Endpoint(parsing: "unix:\(place.path)/front")
    let bridge = try Bridge(
      endpoints: [front], hardware: try Endpoint(parsing: "tty:\(terminal.path)"), timing: .patient())
    let crowd = try Crowd()
    crowd.start { try bridge.run() }
    let peer = TestPeer(
      try Connection.connect(to: front, timeoutMilliseconds: TestPeer.patienceMilliseconds))
    #expect(try terminal.readFrame().isEmpty)
    try terminal.writeFrame([])
    try terminal.writeFrame([1, 2, 3])
    #expect(try peer.receive() == [1, 2, 3])
    try peer.send([0x0d, 0x0a, 0x11, 0x13, 0x04])
    #expect(try terminal.readFrame() == [0x0d, 0x0a, 0x11, 0x13, 0x04])
    bridge.stop()
    crowd.wait()
  }

  @Test func `a terminal that is opened in the middle of a message serves the first prover`() throws {
    let crowd = try Crowd()
    // Both at once, because each waits for the time after which the second empty frame comes.
    for rest: [UInt8] in [[0x34, 0x87, 1, 1], [0x01, 0x50, 0xb5, 0xe2]] {
      crowd.start { try serveFirstProver(after: rest) }
    }
    crowd.wait()
  }

  private func serveFirstProver(after rest: [UInt8]) throws {
    let terminal = try SerialLine()
    let place = try TemporaryFolder()
    let front = try Endpoint(parsing: "unix:\(place.path)/front")
    // The second empty frame comes after this time, and what follows must not take as long, however busy the machine is.
    let timing = BridgeTiming.patient { ($0.freshMilliseconds, $0.silenceMilliseconds) = (10_000, 20) }
    let bridge = try Bridge(
      endpoints: [front], hardware: try Endpoint(parsing: "tty:\(terminal.path)"), timing: timing)
    terminal.writeIfTaken(rest)
    let crowd = try Crowd()
    crowd.start { try bridge.run() }
    let peer = TestPeer(
      try Connection.connect(to: front, timeoutMilliseconds: TestPeer.patienceMilliseconds))
    // The first empty frame is lost in what the device, too, takes for the middle of a message.
    #expect(try terminal.readFrame().isEmpty)
    #expect(try terminal.readFrame().isEmpty)
    try terminal.writeFrame([])
    try terminal.writeFrame([1, 2, 3])
    #expect(try peer.receive() == [1, 2, 3])
    bridge.stop()
    crowd.wait()
  }
}

/// Connects, again while the place is still another prover's, who left a moment ago, and has the device unlock.
private func firstRound(of prover: TestProver, at endpoint: Endpoint) throws -> (TestPeer, TestVerdict) {
  let deadline = Deadline(afterMilliseconds: TestPeer.patienceMilliseconds)
  while true {
    let peer = TestPeer(
      try Connection.connect(to: endpoint, timeoutMilliseconds: TestPeer.patienceMilliseconds))
    do { return (peer, try peer.round(prover, "unlock")) } catch let fault as EncodingFault {
      // `busy` instead of a challenge.
      guard !deadline.hasPassed else { throw fault }
    }
  }
}
