import HoldfastLinux
import TestSupport
import Testing

import HoldfastTransport

/// A device at a socket of bytes, played by the test.
private struct Line {
  let listener: Listener
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    listener = try Listener(folder.endpoint(.stream))
  }

  /// Runs `device` at the other end of a link, which then receives `count` messages.
  func messages(
    _ count: Int, from device: @escaping @Sendable (Connection) throws -> Void
  ) throws -> [[UInt8]] {
    let other = try Worker { [listener] in
      let connection = try listener.accept()
      try device(connection)
      return connection
    }
    var link = try DeviceLink(to: listener.endpoint, timeoutMilliseconds: generousMilliseconds)
    let messages = try (0..<count).map { _ in
      try link.receive(by: Deadline(afterMilliseconds: generousMilliseconds), wholeWithin: generousMilliseconds)
    }
    _ = try other.value()
    return messages
  }
}

extension Connection {
  fileprivate func expectEmptyFrame() {
    #expect(throws: TransportError.emptyFrame) { try receiveBytes() }
  }

  fileprivate func sendEmptyFrame() throws {
    try sendEmptyFrame(by: Deadline(afterMilliseconds: generousMilliseconds))
  }
}

@Suite struct DeviceLinkTests {
  @Test func `a device that speaks by itself is not asked`() throws {
    let (prover, device) = try Connection.pair(framing: .stream)
    // It has spoken before the link looks.
    try device.sendBytes([1])
    var link = try DeviceLink(meeting: prover, by: Deadline(afterMilliseconds: generousMilliseconds))
    #expect(throws: TransportError.timedOutWaiting) { try device.receiveBytes(firstByteWithin: 0) }
    try device.sendBytes([2])
    let messages = try (0..<2).map { _ in try link.receive(by: .never, wholeWithin: generousMilliseconds) }
    #expect(messages == [[1], [2]])
  }

  @Test func `of the messages that wait, the last one counts`() throws {
    let folder = try TemporaryFolder()
    let listener = try Listener(folder.endpoint(.stream))
    let other = try Worker {
      let device = try listener.accept()
      for message in [[1], [2], [3]] as [[UInt8]] { try device.sendRaw([0, 1] + message) }
      return device
    }
    // All of them are there before the first is looked at.
    let connection = try Connection.connect(to: listener.endpoint, timeoutMilliseconds: generousMilliseconds)
    let device = try other.value()
    var link = try DeviceLink(meeting: connection, by: Deadline(afterMilliseconds: generousMilliseconds))
    #expect(try link.receive(by: .never, wholeWithin: generousMilliseconds) == [3])
    withExtendedLifetime(device) {}
  }

  @Test func `a silent device is asked, and what comes before its answer is dropped`() throws {
    let messages = try Line().messages(1) { device in
      device.expectEmptyFrame()
      try device.sendBytes([1])
      try device.sendBytes([2])
      try device.sendEmptyFrame()
      try device.sendBytes([3])
    }
    #expect(messages == [[3]])
  }

  @Test func `a device that does not answer is asked once more`() throws {
    let messages = try Line().messages(1) { device in
      device.expectEmptyFrame()
      device.expectEmptyFrame()
      try device.sendEmptyFrame()
      try device.sendBytes([3])
    }
    #expect(messages == [[3]])
  }

  @Test func `of a slow device that answers twice, the last challenge counts`() throws {
    let messages = try Line().messages(2) { device in
      device.expectEmptyFrame()
      device.expectEmptyFrame()
      for challenge: [UInt8] in [[3], [4]] {
        try device.sendEmptyFrame()
        try device.sendBytes(challenge)
      }
      try device.sendBytes([5])
    }
    #expect(messages == [[4], [5]])
  }

  @Test func `a device that never answers is given up at the deadline`() throws {
    let folder = try TemporaryFolder()
    let listener = try Listener(folder.endpoint(.stream))
    var link = try DeviceLink(to: listener.endpoint, timeoutMilliseconds: 300)
    #expect(throws: TransportError.timedOutWaiting) {
      try link.receive(by: Deadline(afterMilliseconds: 0), wholeWithin: 1)
    }
  }

  @Test func `a repetition is dropped, and the same message after another one is not`() throws {
    let (left, right) = try Connection.pair(framing: .stream)
    var link = DeviceLink(left)
    for byte: UInt8 in [1, 1, 1, 2, 1, 1, 3] { try right.sendBytes([byte]) }
    let messages = try (0..<4).map { _ in try link.receive(by: .never, wholeWithin: generousMilliseconds) }
    #expect(messages == [[1], [2], [1], [3]])
  }

  @Test func `equal answers to mail are no repetitions`() throws {
    let (left, right) = try Connection.pair(framing: .stream)
    var link = DeviceLink(left)
    let refused: [UInt8] = [0x82, 0x08, 0x05]
    for message in [[1], refused, refused, refused, [1], [1], [2]] { try right.sendBytes(message) }
    let messages = try (0..<6).map { _ in try link.receive(by: .never, wholeWithin: generousMilliseconds) }
    #expect(messages == [[1], refused, refused, refused, [1], [2]])
  }

  @Test func `on packets nothing is asked and nothing dropped`() throws {
    let (left, right) = try Connection.pair(framing: .packets)
    var link = DeviceLink(left)
    for byte: UInt8 in [1, 1, 2] { try right.sendBytes([byte]) }
    let messages = try (0..<3).map { _ in try link.receive(by: .never, wholeWithin: generousMilliseconds) }
    #expect(messages == [[1], [1], [2]])
  }
}
