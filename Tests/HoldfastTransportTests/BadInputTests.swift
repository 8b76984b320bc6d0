import HoldfastLinux
import TestSupport
import Testing

import HoldfastTransport

/// Times and counts out of every range, and calls at once.
@Suite struct BadInputTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test(arguments: Framing.allCases, [0, -1, Int.min])
  func `a time of zero or less is no wait`(framing: Framing, milliseconds: Int) throws {
    let (left, right) = try Connection.pair(framing: framing)
    #expect(!right.isEnded(withinMilliseconds: milliseconds))
    right.linger(milliseconds: milliseconds)
    let deadline = Deadline(afterMilliseconds: milliseconds)
    #expect(throws: TransportError.timedOutWaiting) { _ = try right.receive(by: deadline, wholeWithin: milliseconds) }
    try left.send([1].span, by: deadline)
    let message = try right.receive(by: deadline, wholeWithin: milliseconds)
    #expect(message.bytes == [1] && message.transferMilliseconds == 0)
    #expect(throws: TransportError.notFound) {
      try Connection.connect(
        to: folder.endpoint(framing), timeoutMilliseconds: milliseconds, silenceMilliseconds: milliseconds)
    }
  }

  @Test(arguments: [0, -1, Int.min, .max])
  func `any backlog is the system's at most, and one attempt needs no time`(backlog: Int) throws {
    let listener = try Listener(folder.endpoint(), backlog: backlog)
    let client = try Connection.connect(to: folder.endpoint(), timeoutMilliseconds: -1)
    let server = try listener.accept()
    try client.sendBytes([1])
    #expect(try server.receiveBytes() == [1])
  }

  @Test(arguments: [0, -1, Int.min])
  func `a channel with only what it must have waits for no time, and ends nothing`(milliseconds: Int) throws {
    let channel = PlainChannel()
    #expect(!channel.isEnded(withinMilliseconds: milliseconds))
    channel.linger(milliseconds: milliseconds)
    #expect(throws: TransportError.truncated) { try channel.sendEmptyFrame(by: .never) }
    #expect(channel.peer == nil)
  }

  @Test(arguments: Framing.allCases)
  func `both ends send and receive at once`(framing: Framing) throws {
    let (left, right) = try Connection.pair(framing: framing)
    let counts = 1...400
    let senders = try [left, right].map { end in
      try Worker { for count in counts { try end.sendBytes(pattern(count * 10)) } }
    }
    let receiver = try Worker { try counts.allSatisfy { try right.receiveBytes() == pattern($0 * 10) } }
    for count in counts { #expect(try left.receiveBytes() == pattern(count * 10)) }
    #expect(try receiver.value())
    for sender in senders { try sender.value() }
  }

  @Test(arguments: Framing.allCases)
  func `of two threads that accept at once each gets a peer, and both are cancelled`(framing: Framing) throws {
    let listener = try Listener(folder.endpoint(framing))
    let accept = { @Sendable in try listener.accept() }
    let acceptors = [try Worker(accept), try Worker(accept)]
    for acceptor in acceptors { try acceptor.waitUntilBlocked() }
    let clients = try (0..<2).map { _ in
      try Connection.connect(to: folder.endpoint(framing), timeoutMilliseconds: generousMilliseconds)
    }
    for server in try acceptors.map({ try $0.value() }) { try server.sendBytes([7]) }
    for client in clients { #expect(try client.receiveBytes() == [7]) }
    let others = [try Worker(accept), try Worker(accept)]
    for acceptor in others { try acceptor.waitUntilBlocked() }
    listener.cancel()
    for acceptor in others { #expect(throws: TransportError.cancelled) { _ = try acceptor.value() } }
  }
}

/// A channel that never has a message, with the protocol's own answers to everything else.
private struct PlainChannel: MessageChannel {
  func receive(by deadline: Deadline, wholeWithin wholeMilliseconds: Int) throws(TransportError) -> ReceivedMessage {
    throw .closed
  }

  func send(_ message: Span<UInt8>, by deadline: Deadline) throws(TransportError) {}
  func shutdown() {}
}
