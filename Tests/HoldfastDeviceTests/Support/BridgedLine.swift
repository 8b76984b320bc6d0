import Glibc
import HoldfastLinux
import TestSupport
import Testing

import HoldfastDevice
import HoldfastTransport

/// A running bridge whose hardware is played by the test, at a socket or at the far end of a terminal.
final class BridgedLine: Sendable {
  let bridge: Bridge
  let notices: NoticeLog<BridgeNotice>
  let endpoint: Endpoint
  private let listener: Listener
  private let place: TemporaryFolder
  private let ended: WakeUp

  init(
    scheme: String = "unix", timing: BridgeTiming = .patient { $0.retryMilliseconds = 50 },
    listeners: [any ChannelListener] = []
  ) throws {
    let place = try TemporaryFolder()
    let listener = try Listener(try Endpoint(parsing: "unix-stream:\(place.path)/line"))
    let notices = NoticeLog<BridgeNotice>()
    let endpoint = try Endpoint(parsing: "\(scheme):\(place.path)/front")
    let ended = try WakeUp()
    let bridge = try Bridge(
      endpoints: [endpoint], listeners: listeners, hardware: listener.endpoint, timing: timing
    ) { notices.add($0) }
    (self.place, self.listener, self.notices, self.endpoint) = (place, listener, notices, endpoint)
    (self.ended, self.bridge) = (ended, bridge)
    let isStarted = Thread.detach {
      do { try bridge.run() } catch { Issue.record(error) }
      ended.raise()
    }
    #expect(isStarted)
  }

  /// The hardware's end of the line, which the bridge has opened or opens now.
  func hardware() throws -> FakeHardware { FakeHardware(try listener.accept()) }

  /// Nobody is at the hardware's end any more, nor comes.
  func endHardware(_ hardware: FakeHardware) {
    listener.close()
    hardware.peer.connection.shutdown()
  }

  func connect() throws -> TestPeer {
    TestPeer(try Connection.connect(to: endpoint, timeoutMilliseconds: TestPeer.patienceMilliseconds))
  }

  /// The next prover, once the hardware was asked for its challenge and has sent `challenge`.
  func connect(_ hardware: FakeHardware, challenge: [UInt8]) throws -> TestPeer {
    let peer = try connect()
    try hardware.answerEmptyFrame(with: challenge)
    #expect(try peer.receive() == challenge)
    return peer
  }

  /// Says whether the bridge ends long before the timeouts of ``BridgeTiming/patient(_:)``.
  func stop() -> Bool {
    bridge.stop()
    return ended.wait(milliseconds: UInt64(TestPeer.patienceMilliseconds))
  }
}

extension BridgeTiming {
  /// Timing in which no test has to wait for an answer, a challenge, a judgement or a frame to be late, unless `change` sets it.
  static func patient(_ change: (inout BridgeTiming) -> Void = { _ in }) -> BridgeTiming {
    var timing = BridgeTiming(
      answerMilliseconds: 600_000, freshMilliseconds: 600_000, judgingMilliseconds: 600_000,
      frameMilliseconds: 600_000)
    change(&timing)
    return timing
  }
}

/// The hardware's end of a line; a test says what it does.
struct FakeHardware {
  let peer: TestPeer

  init(_ connection: Connection) { peer = TestPeer(connection) }

  func expectEmptyFrame(sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(throws: TransportError.emptyFrame, sourceLocation: sourceLocation) { try peer.receive() }
  }

  /// Whether something from the bridge waits to be read.
  var hasArrived: Bool { peer.connection.hasArrived }

  func sendEmptyFrame() throws {
    try peer.connection.sendEmptyFrame(by: Deadline(afterMilliseconds: TestPeer.patienceMilliseconds))
  }

  func writeRaw(_ bytes: [UInt8]) throws {
    let count = unsafe send(peer.connection.file.descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL))
    try #require(count == bytes.count)
  }

  func answerEmptyFrame(with challenge: [UInt8]) throws {
    expectEmptyFrame()
    try sendEmptyFrame()
    try peer.send(challenge)
  }
}
