import Glibc
import HoldfastLinux
import Testing

import HoldfastTransport

struct DeadlineTests {
  @Test func `a deadline of no time has passed`() {
    #expect(Deadline(afterMilliseconds: 0).hasPassed)
    #expect(Deadline(afterMilliseconds: -5).hasPassed)
    #expect(Deadline(afterMilliseconds: .min).remainingMilliseconds == 0)
  }

  @Test func `a deadline in a minute has not passed`() {
    let deadline = Deadline(afterMilliseconds: 60_000)
    #expect(!deadline.hasPassed)
    #expect(1...60_000 ~= deadline.remainingMilliseconds)
    #expect(deadline < .never)
    #expect(Deadline(afterMilliseconds: 0) < deadline)
  }

  @Test func `a deadline beyond the clock never passes`() {
    #expect(Deadline(afterMilliseconds: .max) == .never)
    #expect(Deadline.never.remainingMilliseconds == .max)
  }

  @Test(arguments: Framing.allCases)
  func `a silent peer is given up before the first byte, and may speak later`(framing: Framing) throws {
    let (left, right) = try Connection.pair(framing: framing)
    #expect(throws: TransportError.timedOutWaiting) { try right.receiveBytes(firstByteWithin: 10) }
    #expect(throws: TransportError.timedOutWaiting) { try right.receiveBytes(firstByteWithin: 0) }
    try left.sendBytes([1])
    #expect(try right.receiveBytes(firstByteWithin: 0, wholeWithin: 0) == [1])
  }

  @Test(arguments: [[0], [0, 3], [0, 3, 1, 2]] as [[UInt8]])
  func `a peer that stops within a message is given up`(part: [UInt8]) throws {
    let (left, right) = try Connection.pair(framing: .stream)
    try left.sendRaw(part)
    #expect(throws: TransportError.timedOutReading) { try right.receiveBytes(wholeWithin: 20) }
    try left.sendRaw([3])
    #expect(throws: TransportError.closed) { try right.receiveBytes() }
  }

  @Test func `a peer that sends a byte now and then does not get past the deadline`() throws {
    let (left, right) = try Connection.pair(framing: .stream)
    let sender = try Worker { () -> TransportError? in
      // 4096 bytes at one each millisecond outlast the deadline a hundred times.
      try left.sendRaw([0x10, 0x00])
      let zero: [UInt8] = [0]
      for _ in 0..<4096 {
        // A line that is full, because nobody reads on a busy machine, takes none.
        _ = unsafe Glibc.send(left.file.descriptor, zero, 1, CInt(MSG_NOSIGNAL))
        if try left.file.wait(for: POLLIN, until: Deadline(afterMilliseconds: 1), unless: nil) == .ready { break }
      }
      return nil
    }
    #expect(throws: TransportError.timedOutReading) { try right.receiveBytes(wholeWithin: 40) }
    try right.sendBytes([13])
    _ = try sender.value()
  }

  @Test(arguments: Framing.allCases)
  func `a peer that never reads is given up`(framing: Framing) throws {
    let (left, right) = try Connection.pair(framing: framing)
    var failure: TransportError?
    var sentCount = 0
    while failure == nil && sentCount < 100_000 {
      do throws(TransportError) {
        try left.sendBytes(pattern(4096), timeoutMilliseconds: 20)
        sentCount += 1
      } catch {
        failure = error
      }
    }
    #expect(failure == .timedOutSending)
    #expect(sentCount > 0)
    #expect(try right.receiveBytes() == pattern(4096))
  }

  @Test func `a stream on which part of a message was sent accepts no other`() throws {
    let (left, right) = try Connection.pair(framing: .stream)
    var capacity: CInt = 4096
    try #require(
      unsafe setsockopt(
        left.file.descriptor, SOL_SOCKET, SO_SNDBUF, &capacity, socklen_t(MemoryLayout<CInt>.size)) == 0)
    // The kernel takes less than half of its buffer at once, and this is more: each message goes in two parts.
    #expect(throws: TransportError.timedOutSending) {
      while true { try left.sendBytes(pattern(4093), timeoutMilliseconds: 1) }
    }
    #expect(throws: TransportError.closed) { try left.sendBytes([1]) }
    #expect(try right.receiveBytes() == pattern(4093))
  }

  @Test func `the time that begins with the first byte is told`() throws {
    let (left, right) = try Connection.pair()
    try left.sendBytes([1])
    var buffer = [UInt8](repeating: 0, count: 4096)
    var span = buffer.mutableSpan
    let message = try right.receive(into: &span, firstByteBy: .never, wholeWithin: 60_000)
    #expect(message.byteCount == 1)
    #expect(1...60_000 ~= message.deadline.remainingMilliseconds)
    try right.sendBytes([2], timeoutMilliseconds: message.deadline.remainingMilliseconds)
  }
}
