import Glibc
import HoldfastLinux
import TestSupport
import Testing

import HoldfastTransport

/// A pseudo-terminal: the endpoint of one side, and the raw bytes of the other.
private final class Line: Sendable {
  let far: OpenFile
  let endpoint: Endpoint

  init() throws {
    var far: CInt = -1
    var near: CInt = -1
    var name = [CChar](repeating: 0, count: 128)
    try #require(unsafe openpty(&far, &near, &name, nil, nil) == 0)
    self.far = OpenFile(taking: far)
    close(near)
    let path = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    endpoint = try Endpoint(parsing: "tty:\(path)")
    try #require(fcntl(far, F_SETFD, FD_CLOEXEC) == 0)
  }

  func connect(silenceMilliseconds: Int = 30) throws(TransportError) -> Connection {
    try Connection.connect(to: endpoint, timeoutMilliseconds: 0, silenceMilliseconds: silenceMilliseconds)
  }

  func write(_ bytes: [UInt8]) throws {
    var writtenCount = 0
    while writtenCount < bytes.count {
      let rest = Array(bytes[writtenCount...])
      let count = unsafe Glibc.write(far.descriptor, rest, rest.count)
      try #require(count > 0)
      writtenCount += count
    }
  }

  func read(byteCount: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < byteCount {
      var part = [UInt8](repeating: 0, count: byteCount - bytes.count)
      let count = unsafe Glibc.read(far.descriptor, &part, part.count)
      try #require(count > 0)
      bytes += part[..<count]
    }
    return bytes
  }
}

extension Connection {
  /// Waits until what was written on the other side has arrived on this one.
  fileprivate func waitForBytes() throws {
    #expect(try file.wait(for: POLLIN, until: Deadline(afterMilliseconds: generousMilliseconds), unless: nil) == .ready)
  }

  /// Lets a line that sent garbage be silent for long enough.
  fileprivate func waitForSilence() throws {
    repeat {
      #expect(throws: TransportError.timedOutWaiting) { try receiveBytes(firstByteWithin: 20) }
    } while terminal?.silenceDeadline != nil
  }
}

/// One after the other: each has its own line, but time is what they are about.
@Suite(.serialized) struct TerminalTests {
  private let line: Line

  init() throws {
    line = try Line()
  }

  @Test(arguments: [1, 672, 4096])
  func `messages go both ways, whatever their bytes mean to a terminal`(byteCount: Int) throws {
    let connection = try line.connect(silenceMilliseconds: generousMilliseconds)
    let message = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0) }
    let frame = [UInt8(byteCount >> 8), UInt8(byteCount & 0xff)] + message
    let writer = try Worker { [line] in try line.write(frame) }
    #expect(try connection.receiveBytes() == message)
    try writer.value()
    let reader = try Worker { [line] in try line.read(byteCount: frame.count) }
    try connection.sendBytes(message)
    #expect(try reader.value() == frame)
  }

  @Test(arguments: [[0xff, 0xff], [0x10, 0x01, 0, 1, 9]] as [[UInt8]])
  func `garbage is dropped until a silence, then messages are read again`(garbage: [UInt8]) throws {
    let connection = try line.connect()
    try line.write(garbage)
    try connection.waitForBytes()
    try connection.waitForSilence()
    try line.write([0, 2, 5, 6])
    #expect(try connection.receiveBytes() == [5, 6])
  }

  @Test func `a silence that passes while two connections are waited for counts`() throws {
    let connection = try line.connect()
    let other = try Connection.pair()
    func wait(milliseconds: Int) throws -> Bool {
      try Connection.wait(
        for: .arrival(on: connection), or: .end(of: other.0), until: Deadline(afterMilliseconds: milliseconds)
      ).first
    }
    try line.write([0xff, 0xff])
    #expect(try wait(milliseconds: generousMilliseconds))
    #expect(throws: TransportError.timedOutWaiting) { try connection.receiveBytes(firstByteWithin: 0) }
    #expect(try !wait(milliseconds: 60))
    try line.write([0, 2, 5, 6])
    #expect(try wait(milliseconds: generousMilliseconds))
    #expect(try connection.receiveBytes(firstByteWithin: 0) == [5, 6])
    withExtendedLifetime(other) {}
  }

  @Test func `no flow control is left to a line, whatever it was set to`() throws {
    var settings = termios()
    try #require(unsafe tcgetattr(line.far.descriptor, &settings) == 0)
    settings.c_iflag |= tcflag_t(IXON | IXOFF | IXANY)
    settings.c_cflag |= tcflag_t(CRTSCTS)
    try #require(unsafe tcsetattr(line.far.descriptor, TCSANOW, &settings) == 0)
    let connection = try line.connect()
    try #require(unsafe tcgetattr(line.far.descriptor, &settings) == 0)
    #expect(settings.c_iflag & tcflag_t(IXON | IXOFF) == 0)
    #expect(settings.c_cflag & tcflag_t(CRTSCTS) == 0)
    withExtendedLifetime(connection) {}
  }

  @Test func `a listener's line that is released at once is handed out again a tenth of a second later`() throws {
    let listener = try Listener(line.endpoint)
    let clock = ContinuousClock()
    let time = try clock.measure { for _ in 0..<4 { _ = try listener.accept() } }
    #expect(time >= .milliseconds(300))
    listener.cancel()
    #expect(throws: TransportError.cancelled) { try listener.accept() }
  }

  @Test func `an empty frame is told, and the next message is read`() throws {
    let connection = try line.connect()
    try line.write([0, 0, 0, 2, 5, 6])
    #expect(throws: TransportError.emptyFrame) { try connection.receiveBytes() }
    #expect(try connection.receiveBytes() == [5, 6])
    try connection.sendEmptyFrame(by: Deadline(afterMilliseconds: generousMilliseconds))
    #expect(try line.read(byteCount: 2) == [0, 0])
  }

  @Test func `a message right after garbage is dropped with it`() throws {
    let connection = try line.connect()
    try line.write([0xff, 0xff] + [0, 2, 3, 4])
    try connection.waitForBytes()
    try connection.waitForSilence()
    try line.write([0, 2, 5, 6])
    #expect(try connection.receiveBytes() == [5, 6])
  }

  @Test func `a line that never falls silent is given up at the deadline`() throws {
    let connection = try line.connect(silenceMilliseconds: generousMilliseconds)
    try line.write([0xff, 0xff])
    try connection.waitForBytes()
    #expect(throws: TransportError.timedOutWaiting) { try connection.receiveBytes(firstByteWithin: 20) }
    try line.write([0, 2, 3, 4])
    #expect(throws: TransportError.timedOutWaiting) { try connection.receiveBytes(firstByteWithin: 20) }
  }

  @Test func `a message that breaks off in silence is dropped`() throws {
    let connection = try line.connect()
    try line.write([0, 9, 1, 2, 3])
    try connection.waitForBytes()
    #expect(throws: TransportError.timedOutWaiting) { try connection.receiveBytes(firstByteWithin: 10) }
    try line.write([0, 2, 5, 6])
    #expect(try connection.receiveBytes() == [5, 6])
  }

  @Test func `a message that is not whole in time is given up, and what follows is dropped until a silence`() throws {
    let connection = try line.connect(silenceMilliseconds: 60)
    try line.write([0, 9, 1, 2, 3])
    #expect(throws: TransportError.timedOutReading) { try connection.receiveBytes(wholeWithin: 10) }
    try connection.waitForSilence()
    try line.write([0, 2, 5, 6])
    #expect(try connection.receiveBytes() == [5, 6])
  }

  @Test func `a line whose other side is gone is closed`() throws {
    var other: Line? = try Line()
    let endpoint = try #require(other?.endpoint)
    let listener = try Listener(endpoint)
    do {
      let connection = try listener.accept()
      other = nil
      #expect(throws: TransportError.closed) { try connection.receiveBytes() }
      #expect(throws: TransportError.closed) { try connection.sendBytes([1]) }
    }
    #expect(throws: TransportError.closed) { try listener.accept() }
    withExtendedLifetime(other) {}
  }

  @Test func `shutdown wakes receive on a line`() throws {
    let connection = try line.connect()
    let receiver = try Worker { try connection.receiveBytes(firstByteWithin: .max) }
    try receiver.waitUntilBlocked()
    connection.shutdown()
    #expect(throws: TransportError.cancelled) { try receiver.value() }
    #expect(throws: TransportError.cancelled) { try connection.sendBytes([1]) }
  }

  @Test func `a line that nobody reads does not hold a sender`() throws {
    let connection = try line.connect()
    var failure: TransportError?
    for _ in 0..<10_000 where failure == nil {
      do throws(TransportError) { try connection.sendBytes(pattern(4096), timeoutMilliseconds: 20) } catch {
        failure = error
      }
    }
    #expect(failure == .timedOutSending)
  }

  @Test func `a line is used by one at a time`() throws {
    let connection = try line.connect()
    #expect(throws: TransportError.addressInUse) { try line.connect() }
    #expect(throws: TransportError.addressInUse) { try Listener(line.endpoint) }
    withExtendedLifetime(connection) {}
  }

  @Test func `a listener gives its line to one connection at a time`() throws {
    let listener = try Listener(line.endpoint)
    var first: Connection? = try listener.accept()
    let next = try Worker { try listener.accept() }
    try next.waitUntilBlocked()
    try line.write([0, 1, 1])
    #expect(try first?.receiveBytes() == [1])
    first = nil
    let second = try next.value()
    try line.write([0, 1, 2])
    #expect(try second.receiveBytes() == [2])
    let third = try Worker { try listener.accept() }
    try third.waitUntilBlocked()
    listener.cancel()
    #expect(throws: TransportError.cancelled) { try third.value() }
  }

  @Test func `what is no terminal is not used as one`() throws {
    let folder = try TemporaryFolder()
    try folder.makeFile("s")
    for (path, expected) in [
      (folder.path + "/s", .pathOccupied), (folder.path, .pathOccupied), ("/dev/null", .pathOccupied),
      (folder.path + "/missing", .notFound),
    ] as [(String, TransportError)] {
      let endpoint = try Endpoint(parsing: "tty:\(path)")
      #expect(throws: expected) { try Connection.connect(to: endpoint, timeoutMilliseconds: 0) }
      #expect(throws: expected) { try Listener(endpoint) }
    }
  }
}
