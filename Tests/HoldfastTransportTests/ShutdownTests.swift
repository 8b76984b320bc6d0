import Glibc
import HoldfastLinux
import Testing

import HoldfastTransport

struct ShutdownTests {
  @Test(arguments: Framing.allCases)
  func `shutdown wakes receive`(framing: Framing) throws {
    let (left, right) = try Connection.pair(framing: framing)
    let receiver = try Worker { try right.receiveBytes(firstByteWithin: .max) }
    try receiver.waitUntilBlocked()
    right.shutdown()
    #expect(throws: TransportError.cancelled) { try receiver.value() }
    #expect(throws: TransportError.closed) { try left.receiveBytes() }
  }

  @Test func `shutdown wakes receive within a message`() throws {
    let (left, right) = try Connection.pair(framing: .stream)
    try left.sendRaw([0, 5, 1])
    let receiver = try Worker { try right.receiveBytes(wholeWithin: .max) }
    try receiver.waitUntilBlocked()
    right.shutdown()
    #expect(throws: TransportError.cancelled) { try receiver.value() }
  }

  @Test(arguments: Framing.allCases)
  func `shutdown wakes send`(framing: Framing) throws {
    let (left, right) = try Connection.pair(framing: framing)
    let sender = try Worker {
      while true { try left.sendBytes(pattern(4096), timeoutMilliseconds: .max) }
    }
    _ = try right.receiveBytes()
    try sender.waitUntilBlocked()
    left.shutdown()
    #expect(throws: TransportError.cancelled) { try sender.value() }
  }

  @Test(arguments: Framing.allCases)
  func `signals of the process neither end nor prolong a wait`(framing: Framing) throws {
    var action = sigaction()
    unsafe action.__sigaction_handler.sa_handler = { _ in }
    try #require(unsafe sigaction(SIGUSR1, &action, nil) == 0)
    let (left, right) = try Connection.pair(framing: framing)
    let receiver = try Worker { try right.receiveBytes() }
    for _ in 0..<5 {
      try receiver.waitUntilBlocked()
      try receiver.interrupt(with: SIGUSR1)
    }
    try left.sendBytes([1])
    #expect(try receiver.value() == [1])
    let waiter = try Worker { try right.receiveBytes(firstByteWithin: 40) }
    try waiter.interrupt(with: SIGUSR1)
    #expect(throws: TransportError.timedOutWaiting) { try waiter.value() }
  }

  @Test(arguments: Framing.allCases)
  func `after shutdown everything is cancelled`(framing: Framing) throws {
    let (left, right) = try Connection.pair(framing: framing)
    try left.sendBytes([1])
    right.shutdown()
    right.shutdown()
    #expect(throws: TransportError.cancelled) { try right.receiveBytes() }
    #expect(throws: TransportError.cancelled) { try right.sendBytes([1]) }
  }

  @Test(arguments: Framing.allCases)
  func `shutdown while messages pass leaves neither end waiting`(framing: Framing) throws {
    for _ in 0..<20 {
      let (left, right) = try Connection.pair(framing: framing)
      let echo = try Worker {
        while true { try right.sendBytes(try right.receiveBytes()) }
      }
      for byteCount in 1...5 {
        try left.sendBytes(pattern(byteCount))
        #expect(try left.receiveBytes() == pattern(byteCount))
      }
      left.shutdown()
      #expect(throws: TransportError.closed) { try echo.value() }
    }
  }

  @Test(arguments: Framing.allCases)
  func `a pause lasts while the connection does, also when the peer has nothing more to say`(framing: Framing) throws {
    let (left, right) = try Connection.pair(framing: framing)
    try left.sendBytes([1])
    _ = Glibc.shutdown(left.file.descriptor, CInt(SHUT_WR))
    let deadline = Deadline(afterMilliseconds: 20)
    #expect(!right.isEnded(withinMilliseconds: 20))
    #expect(deadline.hasPassed)
  }

  @Test(arguments: Framing.allCases, [false, true])
  func `a pause ends with the connection`(framing: Framing, byPeer: Bool) throws {
    let (left, right) = try Connection.pair(framing: framing)
    let pause = try Worker { right.isEnded(withinMilliseconds: .max) }
    try pause.waitUntilBlocked()
    (byPeer ? left : right).shutdown()
    #expect(try pause.value())
    #expect(right.isEnded(withinMilliseconds: .max))
  }
}
