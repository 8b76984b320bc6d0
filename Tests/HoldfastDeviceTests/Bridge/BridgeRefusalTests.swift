import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

import HoldfastDevice

@Suite struct BridgeRefusalTests {
  @Test func `who comes while another is served is told busy, and the place is free afterwards`() throws {
    let line = try BridgedLine(timing: .patient { $0.provingMilliseconds = 600_000 })
    let hardware = try line.hardware()
    var first: TestPeer? = try line.connect(hardware, challenge: [1])
    for _ in 0..<3 {
      let other = try line.connect()
      #expect(try other.unsealedStatus() == .busy)
      other.expectEnd()
    }
    try first?.send([2])
    #expect(try hardware.peer.receive() == [2])
    first = nil
    #expect(line.notices.wait(for: .disconnected(connection: 1, messageCount: 1)))
    _ = try line.connect(hardware, challenge: [3])
    #expect(line.stop())
  }

  @Test func `a silent prover is told that its challenge has expired, and makes room`() throws {
    let line = try BridgedLine(timing: .patient { $0.answerMilliseconds = 60 })
    let hardware = try line.hardware()
    let peer = try line.connect(hardware, challenge: [1])
    #expect(try peer.unsealedStatus() == .challengeExpired)
    peer.expectEnd()
    #expect(line.notices.wait(for: .refused(connection: 1, .challengeExpired)))
    #expect(line.notices.wait(for: .disconnected(connection: 1, messageCount: 1)))
    _ = try line.connect(hardware, challenge: [2])
    #expect(line.stop())
  }

  @Test(arguments: [[0x10, 0x01], [0xff, 0xff, 1, 2], [0x00, 0x20, 0x85], [0x01]] as [[UInt8]])
  func `what is no whole message is malformed and no byte of it reaches the hardware`(bytes: [UInt8]) throws {
    let line = try BridgedLine(scheme: "unix-stream", timing: .patient { $0.messageMilliseconds = 60 })
    let hardware = try line.hardware()
    let raw = try RawSocket(line.endpoint)
    try hardware.answerEmptyFrame(with: [7, 7])
    #expect(try raw.read() == [0, 2, 7, 7])
    try raw.write(bytes)
    #expect(try raw.readToEnd().suffix(4) == [0x83, 0x03, 0x0d, 0xf6])
    #expect(line.notices.wait(for: .refused(connection: 1, .malformed)))
    #expect(line.notices.wait(for: .disconnected(connection: 1, messageCount: 1)))
    // The next thing on the line is the next prover's empty frame.
    _ = try line.connect(hardware, challenge: [8])
    #expect(line.stop())
  }

  @Test(arguments: [0, 4097, 8000])
  func `a packet that is no message is malformed`(byteCount: Int) throws {
    let line = try BridgedLine()
    let hardware = try line.hardware()
    let raw = try RawSocket(line.endpoint)
    try hardware.answerEmptyFrame(with: [7, 7])
    #expect(try raw.read() == [7, 7])
    try raw.write([UInt8](repeating: 1, count: byteCount))
    #expect(try raw.read() == [0x83, 0x03, 0x0d, 0xf6])
    #expect(line.stop())
  }

  @Test func `a malformed of the hardware's ends the connection`() throws {
    let line = try BridgedLine()
    let hardware = try line.hardware()
    let peer = try line.connect(hardware, challenge: [1])
    try peer.send([0xff])
    #expect(try hardware.peer.receive() == [0xff])
    try hardware.peer.send([0x83, 0x03, 0x0d, 0xf6])
    #expect(try peer.unsealedStatus() == .malformed)
    peer.expectEnd()
    #expect(line.stop())
  }

  @Test func `a challenge that the hardware abandons by itself is void for its prover`() throws {
    let line = try BridgedLine()
    let hardware = try line.hardware()
    for isEmptyFrame in [false, true] {
      let peer = try line.connect(hardware, challenge: [1, isEmptyFrame ? 1 : 0])
      if isEmptyFrame { try hardware.sendEmptyFrame() } else { try hardware.peer.send([2]) }
      #expect(try peer.unsealedStatus() == .challengeExpired)
      peer.expectEnd()
      #expect(line.notices.wait(for: .disconnected(connection: isEmptyFrame ? 2 : 1, messageCount: 1)))
    }
    #expect(line.stop())
  }

  @Test func `a prover that floods gets one answer for each message, and the hardware one message at a time`() throws {
    let line = try BridgedLine()
    let hardware = try line.hardware()
    let peer = try line.connect(hardware, challenge: [1])
    for byte: UInt8 in 10..<20 { try peer.send([byte]) }
    for byte: UInt8 in 10..<20 {
      #expect(try hardware.peer.receive() == [byte])
      #expect(throws: TransportError.timedOutWaiting) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var span = buffer.mutableSpan
        _ = try hardware.peer.connection.receive(into: &span, firstByteWithin: 10, wholeWithin: 10)
      }
      try hardware.peer.send([byte, 1])
      #expect(try peer.receive() == [byte, 1])
    }
    #expect(line.stop())
  }

  @Test func `hardware that is silent costs a prover its connection, and the line is opened again`() throws {
    let unanswered = try BridgedLine(timing: .patient { ($0.freshMilliseconds, $0.retryMilliseconds) = (300, 30) })
    let silent = try unanswered.hardware()
    let first = try unanswered.connect()
    #expect(try first.unsealedStatus() == .internal)
    first.expectEnd()
    // It was asked twice.
    silent.expectEmptyFrame()
    silent.expectEmptyFrame()
    silent.peer.expectEnd()
    #expect(unanswered.notices.wait(for: .hardwareLost(.silent)))
    // The reason is told before what follows from it.
    let told = unanswered.notices.all
    #expect(
      try #require(told.firstIndex(of: .hardwareLost(.silent)))
        < #require(told.firstIndex(of: .refused(connection: 1, .internal))))
    let back = try unanswered.hardware()
    #expect(unanswered.notices.wait(for: .hardwareBack))
    _ = try unanswered.connect()
    back.expectEmptyFrame()
    #expect(unanswered.stop())

    let line = try BridgedLine(timing: .patient { ($0.judgingMilliseconds, $0.retryMilliseconds) = (300, 30) })
    let hardware = try line.hardware()
    let second = try line.connect()
    hardware.expectEmptyFrame()
    // The challenge comes together with the empty frame: the time for an answer holds for it, too.
    try hardware.writeRaw([0, 0, 0, 1, 1])
    #expect(try second.receive() == [1])
    try second.send([2])
    #expect(try hardware.peer.receive() == [2])
    #expect(try second.unsealedStatus() == .internal)
    #expect(line.notices.wait(for: .hardwareLost(.silent)))
    _ = try line.hardware()
    #expect(line.notices.wait(for: .hardwareBack))
    #expect(line.stop())
  }

  @Test func `a line that is lost is closed at once, long before it is opened again`() throws {
    let line = try BridgedLine(timing: .patient { ($0.freshMilliseconds, $0.retryMilliseconds) = (60, 600_000) })
    let silent = try line.hardware()
    #expect(try line.connect().unsealedStatus() == .internal)
    silent.expectEmptyFrame()
    silent.expectEmptyFrame()
    silent.peer.expectEnd()
    #expect(line.stop())
  }

  @Test(arguments: [[], [0x10, 0x01], [0x00, 0x20, 0x83]] as [[UInt8]])
  func `hardware that leaves, babbles or breaks off is opened again`(bytes: [UInt8]) throws {
    let line = try BridgedLine(timing: .patient { ($0.frameMilliseconds, $0.retryMilliseconds) = (60, 30) })
    var hardware: FakeHardware? = try line.hardware()
    let peer = try line.connect(try #require(hardware), challenge: [1])
    try peer.send([2])
    #expect(try hardware?.peer.receive() == [2])
    if bytes.isEmpty { hardware = nil } else { try hardware?.writeRaw(bytes) }
    #expect(try peer.unsealedStatus() == .internal)
    peer.expectEnd()
    #expect(line.notices.wait(for: .disconnected(connection: 1, messageCount: 1)))
    let again = try line.hardware()
    #expect(line.notices.wait(for: .hardwareBack))
    _ = try line.connect(again, challenge: [3])
    #expect(line.stop())
  }

  @Test func `while the hardware is gone provers are told, and its loss is said once`() throws {
    let line = try BridgedLine(timing: .patient { $0.retryMilliseconds = 20 })
    line.endHardware(try line.hardware())
    let loss = BridgeNotice.hardwareLost(.transport(.notFound))
    #expect(line.notices.wait(for: loss))
    for _ in 0..<5 {
      let peer = try line.connect()
      #expect(try peer.unsealedStatus() == .internal)
      peer.expectEnd()
    }
    #expect(line.notices.all.count { $0 == loss } == 1)
    #expect(line.stop())
  }

  @Test func `over Bluetooth, a refused prover has its place until it ends the connection, which no other host has`()
    throws
  {
    let host = "00:1A:7D:DA:71:13"
    let endpoint = try Endpoint(parsing: "le:\(host),psm=0x80")
    guard case .bluetooth(_, let port) = endpoint.address else { throw EndpointError.transport }
    let (left, right) = try OpenFile.socketPair(framing: endpoint.scheme.framing)
    let far = Connection(file: right, scheme: endpoint.scheme, port: port)
    let line = try BridgedLine(
      timing: .patient { ($0.answerMilliseconds, $0.farewellMilliseconds) = (60, 600_000) },
      listeners: [OnePeer(Connection(file: left, scheme: endpoint.scheme, port: port))])
    let hardware = try line.hardware()
    try hardware.answerEmptyFrame(with: [1])
    let peer = TestPeer(far)
    #expect(try peer.receive() == [1])
    #expect(try peer.unsealedStatus() == .challengeExpired)
    #expect(!far.isEnded(withinMilliseconds: 200))
    // Nobody knows on which host it is.
    #expect(try line.bridge.standing(of: BluetoothAddress(parsing: host)) == .absent)
    far.shutdown()
    #expect(line.notices.wait(for: .disconnected(connection: 1, messageCount: 1)))
    #expect(line.stop())
  }

  @Test func `an endpoint that is lost ends the bridge, and says which one it was`() throws {
    let place = try TemporaryFolder()
    let listener = try Listener(try Endpoint(parsing: "unix-stream:\(place.path)/line"))
    var terminal: SerialLine? = try SerialLine()
    let endpoint = try Endpoint(parsing: "tty:\(try #require(terminal).path)")
    let bridge = try Bridge(endpoints: [endpoint], hardware: listener.endpoint)
    terminal = nil
    let ended = try WakeUp()
    let fault = Mutex<BridgeFault?>(nil)
    let crowd = try Crowd()
    crowd.start {
      do throws(BridgeFault) { try bridge.run() } catch { fault.withLock { $0 = error } }
      ended.raise()
    }
    #expect(ended.wait(milliseconds: UInt64(TestPeer.patienceMilliseconds)))
    bridge.stop()
    crowd.wait()
    #expect(fault.withLock { $0 } == .server(.endpoint(endpoint, .closed)))
  }

  @Test(arguments: StopMoment.allCases)
  func `a stop ends it, whatever it waits for`(moment: StopMoment) throws {
    let line = try BridgedLine()
    let hardware = try line.hardware()
    let peer = moment == .idle ? nil : try line.connect()
    if moment != .idle && moment != .asking {
      try hardware.answerEmptyFrame(with: [1])
      #expect(try peer?.receive() == [1])
    }
    switch moment {
    case .idle, .answering: break
    case .asking: hardware.expectEmptyFrame()
    case .judging:
      try peer?.send([2])
      #expect(try hardware.peer.receive() == [2])
    case .frame: try hardware.writeRaw([0x01, 0x00, 0x83])
    }
    #expect(line.stop())
  }

  enum StopMoment: CaseIterable {
    case idle, asking, answering, judging
    /// In the middle of a message of the hardware.
    case frame
  }
}
