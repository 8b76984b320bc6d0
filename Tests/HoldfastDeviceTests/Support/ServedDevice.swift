import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

import HoldfastDevice

/// A device that is served at a socket in its own folder, by a thread.
final class ServedDevice: Sendable {
  let server: DeviceServer<LockActuator<SimulatedLock>, DeviceSecrets, RepeatingRandom, TestClock>
  let endpoint: Endpoint
  let notices: NoticeLog<ServerNotice>
  private let ended: WakeUp
  private let fault = Mutex<ServerFault?>(nil)

  /// `path` is a terminal's; otherwise it is a socket in the device's place. `others` are more endpoints. A million notices are better
  /// not kept.
  init(
    _ device: TestDevice, scheme: String = "unix", path: String? = nil, others: [Endpoint] = [],
    listeners: [any ChannelListener] = [], options: ServerOptions = ServerOptions(),
    rememberedTokenCount: Int = TokenMemory.usualCapacity, keepsNotices: Bool = true
  ) throws {
    endpoint = try Endpoint(parsing: "\(scheme):\(path ?? device.place.path + "/socket")")
    let notices = NoticeLog<ServerNotice>()
    self.notices = notices
    ended = try WakeUp()
    let open = try OpenDevice(
      folder: device.folder, keys: try device.folder.secrets(), random: RepeatingRandom(), clock: device.clock,
      rememberedTokenCount: rememberedTokenCount,
      notify: { notice in if keepsNotices { notices.add(notice) } })
    let lock = LockActuator(try device.folder.openLock())
    server = try DeviceServer(open, actuator: lock, at: [endpoint] + others, listeners: listeners, options: options)
    let isStarted = Thread.detach { [self] in
      do throws(ServerFault) { try server.run() } catch { fault.withLock { $0 = error } }
      ended.raise()
    }
    #expect(isStarted)
  }

  /// Stops the server and returns once it has ended; throws why it ended before.
  func stop() throws {
    server.stop()
    try waitForEnd()
  }

  /// Returns once the server has ended; throws why, where it was not stopped.
  func waitForEnd() throws {
    ended.wait(milliseconds: nil)
    if let fault = fault.withLock({ $0 }) { throw fault }
  }

  func connect(to other: Endpoint? = nil) throws -> TestPeer {
    TestPeer(try Connection.connect(to: other ?? endpoint, timeoutMilliseconds: TestPeer.patienceMilliseconds))
  }
}

/// A prover's end of a socket.
final class TestPeer {
  /// How long the other end may take on a machine that has more to do.
  static let patienceMilliseconds = 60_000

  let connection: Connection

  init(_ connection: Connection) {
    self.connection = connection
  }

  func receive() throws(TransportError) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 4096)
    var span = buffer.mutableSpan
    let count = try connection.receive(
      into: &span, firstByteWithin: Self.patienceMilliseconds, wholeWithin: Self.patienceMilliseconds)
    return Array(buffer[..<count])
  }

  func send(_ message: [UInt8]) throws(TransportError) {
    try connection.send(message.span, timeoutMilliseconds: Self.patienceMilliseconds)
  }

  /// M1, which must come now.
  func challenge() throws -> [UInt8] {
    let message = try receive()
    _ = try Challenge(message.span)
    return message
  }

  /// A whole round.
  func round(
    _ prover: TestProver, _ command: String = "unlock", number: UInt64? = nil, flaws: Flaws = []
  ) throws -> TestVerdict {
    let answer = try prover.answer(try challenge(), command: command, flaws: flaws, number: number)
    try send(answer.message)
    return try prover.open(try receive(), after: answer)
  }

  /// The status of an M3 without a seal, which must come now.
  func unsealedStatus() throws -> Status {
    let message = try receive()
    let verdict = try VerdictMessage(message.span)
    let (status, isSealed) = (verdict.status, verdict.isSealed)
    #expect(!isSealed)
    return status
  }

  /// The device must end the connection now.
  func expectEnd(sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(throws: TransportError.closed, sourceLocation: sourceLocation) { try receive() }
  }
}

/// The notices of a server so far.
final class NoticeLog<Notice: Equatable & Sendable>: Sendable {
  private let state = Mutex(State())

  private struct State {
    var notices: [Notice] = []
    var waiting: [(notice: Notice, count: Int, flag: WakeUp)] = []

    func has(_ notice: Notice, _ count: Int) -> Bool {
      notices.count { $0 == notice } >= count
    }
  }

  func add(_ notice: Notice) {
    state.withLock { state in
      state.notices.append(notice)
      for wait in state.waiting where wait.notice == notice && state.has(notice, wait.count) { wait.flag.raise() }
    }
  }

  var all: [Notice] { state.withLock { $0.notices } }

  /// Waits until `notice` was given so often, with patience; says whether it was.
  func wait(for notice: Notice, count: Int = 1) -> Bool {
    guard let flag = try? WakeUp() else { return false }
    state.withLock { state in
      if state.has(notice, count) { flag.raise() }
      state.waiting.append((notice, count, flag))
    }
    return flag.wait(milliseconds: UInt64(TestPeer.patienceMilliseconds))
  }
}

extension ServerTiming {
  /// The usual timeouts, except for those that are named.
  init(
    answerMilliseconds: Int? = nil, messageMilliseconds: Int? = nil, sendMilliseconds: Int? = nil,
    greatestDelayMilliseconds: UInt64? = nil, provingMilliseconds: UInt64? = nil
  ) {
    self.init()
    self.answerMilliseconds = answerMilliseconds ?? self.answerMilliseconds
    self.messageMilliseconds = messageMilliseconds ?? self.messageMilliseconds
    self.sendMilliseconds = sendMilliseconds ?? self.sendMilliseconds
    self.greatestDelayMilliseconds = greatestDelayMilliseconds ?? self.greatestDelayMilliseconds
    self.provingMilliseconds = provingMilliseconds ?? self.provingMilliseconds
  }
}

extension ServerOptions {
  /// The usual limits, except for those that are named.
  init(connectionCount: Int? = nil, timing: ServerTiming) {
    self.init()
    self.connectionCount = connectionCount ?? self.connectionCount
    self.timing = timing
  }

  init(connectionCount: Int) { self.init(connectionCount: connectionCount, timing: ServerTiming()) }
}
