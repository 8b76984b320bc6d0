import Glibc
import HoldfastCore
import HoldfastDevice
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import Testing

@Suite struct HostilePeersTests {
  @Test(arguments: ["unix", "unix-stream"])
  func `a silent peer gets a second challenge and is then let go`(scheme: String) throws {
    let device = try TestDevice()
    let timing = ServerTiming(answerMilliseconds: 50)
    let served = try ServedDevice(device, scheme: scheme, options: ServerOptions(timing: timing))
    let peer = try served.connect()
    let first = try peer.challenge()
    #expect(try peer.unsealedStatus() == .challengeExpired)
    #expect(try peer.challenge() != first)
    #expect(try peer.unsealedStatus() == .challengeExpired)
    peer.expectEnd()
    try served.stop()
  }

  @Test func `a peer that answers in between may be silent again, but not answer an old challenge`() throws {
    let device = try TestDevice()
    let (ours, theirs) = try Connection.pair()
    let channel = StagedChannel(ours, silences: [true, false, true, false])
    let (open, lock) = (try device.opened(), device.lock)
    let crowd = try Crowd()
    crowd.start { try open.serve(channel, actuator: LockActuator(lock)) }
    let prover = try device.prover()
    let peer = TestPeer(theirs)
    let old = try peer.challenge()
    #expect(try peer.unsealedStatus() == .challengeExpired)
    #expect(try peer.round(prover).status == .accepted)
    _ = try peer.challenge()
    #expect(try peer.unsealedStatus() == .challengeExpired)
    _ = try peer.challenge()
    try peer.send(try prover.answer(old, command: "unlock").message)
    #expect(try peer.unsealedStatus() == .deviceMismatch)
    theirs.shutdown()
    crowd.wait()
    open.close()
  }

  @Test func `a message that does not end in time is malformed, and the connection ends`() throws {
    let device = try TestDevice()
    let timing = ServerTiming(messageMilliseconds: 50)
    let served = try ServedDevice(device, scheme: "unix-stream", options: ServerOptions(timing: timing))
    let raw = try RawSocket(served.endpoint, type: Int32(SOCK_STREAM.rawValue))
    try raw.write([0x01, 0x00, 0x85])
    #expect(try raw.readToEnd().suffix(4) == [0x83, 0x03, 0x0d, 0xf6])
    try served.stop()
  }

  @Test(arguments: [[0x10, 0x01], [0xff, 0xff]] as [[UInt8]])
  func `a frame of an impossible length is malformed, and the connection ends`(length: [UInt8]) throws {
    let device = try TestDevice()
    let served = try ServedDevice(device, scheme: "unix-stream")
    let raw = try RawSocket(served.endpoint, type: Int32(SOCK_STREAM.rawValue))
    try raw.write(length)
    #expect(try raw.readToEnd().suffix(4) == [0x83, 0x03, 0x0d, 0xf6])
    try served.stop()
  }

  @Test func `a message that is cut off by its sender is malformed`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device, scheme: "unix-stream")
    let raw = try RawSocket(served.endpoint, type: Int32(SOCK_STREAM.rawValue))
    try raw.write([0x00, 0x20, 0x85, 0x02])
    raw.endWriting()
    #expect(try raw.readToEnd().suffix(4) == [0x83, 0x03, 0x0d, 0xf6])
    try served.stop()
  }

  @Test(arguments: [1, 17, 4096, 4097, 5000])
  func `a packet of garbage is malformed, and the connection ends`(byteCount: Int) throws {
    let device = try TestDevice()
    let served = try ServedDevice(device)
    let raw = try RawSocket(served.endpoint, type: Int32(SOCK_SEQPACKET.rawValue))
    _ = try raw.read()
    try raw.write((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 197) })
    #expect(try raw.read() == [0x83, 0x03, 0x0d, 0xf6])
    #expect(try raw.read().isEmpty)
    try served.stop()
  }

  @Test func `a flood that reads nothing is let go, and others are served meanwhile`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device, options: ServerOptions(timing: ServerTiming(sendMilliseconds: 50)))
    let prover = try device.prover()
    let flood = try served.connect()
    let message = try prover.answer(try flood.challenge(), command: "unlock", flaws: .asReference).message
    // Each is answered tokenUnknown and followed by a challenge, until neither end's socket takes any more.
    #expect(throws: TransportError.self) {
      while true { try flood.connection.send(message.span, timeoutMilliseconds: 2000) }
    }
    #expect(try served.connect().round(prover).status == .accepted)
    try served.stop()
  }

  @Test func `peers that come and go at once leave the server as it was`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device, options: ServerOptions(connectionCount: 4))
    for number in 0..<200 {
      let peer = try served.connect()
      if number % 3 == 0 { _ = try? peer.receive() }
      if number % 5 == 0 { try? peer.send([UInt8(number)]) }
    }
    let prover = try device.prover()
    var status = Status.busy
    let deadline = Deadline(afterMilliseconds: TestPeer.patienceMilliseconds)
    while status == .busy, !deadline.hasPassed {
      guard let verdict = try? served.connect().round(prover) else { continue }
      status = verdict.status
    }
    #expect(status == .accepted)
    try served.stop()
  }

  @Test func `from the tenth failed proof on an answer is held back`() throws {
    let device = try TestDevice()
    let timing = ServerTiming(greatestDelayMilliseconds: 40)
    let served = try ServedDevice(device, options: ServerOptions(timing: timing))
    let prover = try device.prover()
    let peer = try served.connect()
    let clock = SystemClock()
    var waits: [UInt64] = []
    for _ in 0..<11 {
      let answer = try prover.answer(try peer.challenge(), command: "unlock", flaws: .wrongDevice)
      let start = clock.monotonicMilliseconds()
      try peer.send(answer.message)
      #expect(try peer.unsealedStatus() == .deviceMismatch)
      waits.append(clock.monotonicMilliseconds() - start)
    }
    #expect(waits[9] >= 39)
    #expect(waits[10] >= 39)
    #expect(try served.connect().round(prover).status == .accepted)
    try served.stop()
  }
}
