import CBlueZ
import Glibc
import HoldfastLinux
import Testing

import HoldfastTransport

struct MessageTests {
  @Test(arguments: Framing.allCases, [1, 2, 255, 256, 672, 4095, 4096])
  func `a message arrives as it was sent`(framing: Framing, byteCount: Int) throws {
    let (left, right) = try Connection.pair(framing: framing)
    try left.sendBytes(pattern(byteCount))
    try right.sendBytes([7])
    #expect(try right.receiveBytes() == pattern(byteCount))
    #expect(try left.receiveBytes() == [7])
  }

  @Test(arguments: Framing.allCases)
  func `messages stay apart and in order`(framing: Framing) throws {
    let (left, right) = try Connection.pair(framing: framing)
    for byteCount in 1...40 { try left.sendBytes(pattern(byteCount)) }
    for byteCount in 1...40 { #expect(try right.receiveBytes() == pattern(byteCount)) }
  }

  @Test(arguments: Framing.allCases)
  func `nothing of 0 or 4097 bytes is sent`(framing: Framing) throws {
    let (left, right) = try Connection.pair(framing: framing)
    #expect(throws: TransportError.tooLong) { try left.sendBytes(pattern(4097)) }
    #expect(throws: TransportError.truncated) { try left.sendBytes([]) }
    try left.sendBytes([1])
    #expect(try right.receiveBytes() == [1])
  }

  @Test func `an empty frame is refused where messages are packets, and nothing is sent`() throws {
    let (left, right) = try Connection.pair()
    #expect(throws: TransportError.truncated) {
      try left.sendEmptyFrame(by: Deadline(afterMilliseconds: generousMilliseconds))
    }
    try left.send([1].span, by: Deadline(afterMilliseconds: generousMilliseconds))
    #expect(try right.receive(by: .never, wholeWithin: generousMilliseconds).bytes == [1])
  }

  @Test func `a stream carries the length big-endian before the message`() throws {
    let (left, right) = try Connection.pair(framing: .stream)
    try left.sendBytes(pattern(0x0203))
    var prefix: [UInt8] = [0, 0]
    #expect(unsafe recv(right.file.descriptor, &prefix, 2, CInt(MSG_WAITALL)) == 2)
    #expect(prefix == [0x02, 0x03])
  }

  @Test(arguments: [4097, 8000, 65536])
  func `a packet of more than 4096 bytes is refused and ends receiving`(byteCount: Int) throws {
    let (left, right) = try Connection.pair(framing: .packets)
    try left.sendRaw(pattern(byteCount))
    try left.sendBytes([1])
    #expect(throws: TransportError.tooLong) { try right.receiveBytes() }
    #expect(throws: TransportError.closed) { try right.receiveBytes() }
  }

  @Test(arguments: [[0x10, 0x01], [0x20, 0x00], [0xff, 0xff]] as [[UInt8]])
  func `a length of more than 4096 is refused before any byte of the message`(prefix: [UInt8]) throws {
    let (left, right) = try Connection.pair(framing: .stream)
    try left.sendRaw(prefix)
    #expect(throws: TransportError.tooLong) { try right.receiveBytes() }
    #expect(throws: TransportError.closed) { try right.receiveBytes() }
  }

  @Test func `a packet without bytes is refused`() throws {
    let (left, right) = try Connection.pair(framing: .packets)
    try left.sendRaw([])
    #expect(throws: TransportError.truncated) { try right.receiveBytes() }
  }

  @Test func `an empty frame on a stream is told, and the next message is read`() throws {
    let (left, right) = try Connection.pair(framing: .stream)
    try left.sendEmptyFrame(by: Deadline(afterMilliseconds: generousMilliseconds))
    try left.sendBytes([1])
    #expect(throws: TransportError.emptyFrame) { try right.receiveBytes() }
    #expect(try right.receiveBytes() == [1])
  }

  @Test func `an empty frame on RFCOMM is refused and ends receiving`() throws {
    let (near, far) = try OpenFile.socketPair(framing: .stream)
    let connection = Connection(file: near, scheme: .rfcomm, port: .rfcomm(channel: 5))
    try Connection(file: far, scheme: .rfcomm).sendRaw([0, 0, 0, 1, 1])
    #expect(throws: TransportError.truncated) { try connection.receiveBytes() }
    #expect(throws: TransportError.closed) { try connection.receiveBytes() }
  }

  /// A datagram socket that was shut down behaves as a Bluetooth socket does whose error another call has had: without bytes, without
  /// an end, and with poll(2) returning at once.
  @Test(arguments: [Scheme.l2cap, .rfcomm, .lowEnergy, .unix])
  func `an end that the kernel no longer reports is an end`(scheme: Scheme) throws {
    var ends: [CInt] = [-1, -1]
    let type = CInt(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    try #require(unsafe socketpair(AF_UNIX, type, 0, &ends) == 0)
    let (near, far) = (OpenFile(taking: ends[0]), OpenFile(taking: ends[1]))
    let message: [UInt8] = scheme.framing == .packets ? [7] : [0, 1, 7]
    try #require(unsafe send(far.descriptor, message, message.count, 0) == message.count)
    try #require(shutdown(near.descriptor, CInt(SHUT_RDWR)) == 0)
    let connection = Connection(file: near, scheme: scheme)
    if scheme.framing == .packets { #expect(try connection.receiveBytes() == [7]) }
    #expect(throws: TransportError.self) { try connection.receive(by: .never, wholeWithin: .max) }
    #expect(throws: TransportError.closed) { try connection.receive(by: .never, wholeWithin: .max) }
    #expect(throws: TransportError.closed) { try connection.sendBytes([1]) }
  }

  @Test(arguments: Framing.allCases)
  func `a refused message can still be answered, even to a peer that sent more`(framing: Framing) throws {
    let (left, right) = try Connection.pair(framing: framing)
    try left.sendRaw(framing == .packets ? pattern(4097) : [0x10, 0x01])
    try left.sendRaw(pattern(100))
    do {
      let answering = right
      #expect(throws: TransportError.tooLong) { try answering.receiveBytes() }
      try answering.sendBytes([3, 13])
    }
    right.shutdown()
    #expect(try left.receiveBytes() == [3, 13])
    #expect(throws: TransportError.closed) { try left.receiveBytes() }
  }

  @Test(arguments: Framing.allCases)
  func `an answer survives that its sender closes with unread messages`(framing: Framing) throws {
    var (left, right) = try Connection.pair(framing: framing) as (Connection, Connection?)
    try left.sendBytes([1])
    try right?.sendBytes([3, 13])
    right = nil
    #expect(try left.receiveBytes() == [3, 13])
    #expect(throws: TransportError.closed) { try left.receiveBytes() }
  }

  @Test(arguments: Framing.allCases)
  func `a peer that leaves between messages has closed`(framing: Framing) throws {
    var (left, right) = try Connection.pair(framing: framing) as (Connection?, Connection)
    try left?.sendBytes([1])
    left = nil
    #expect(try right.receiveBytes() == [1])
    #expect(throws: TransportError.closed) { try right.receiveBytes() }
    #expect(throws: TransportError.closed) { try right.sendBytes([1]) }
  }

  @Test(arguments: [[0], [0, 3], [0, 3, 1, 2]] as [[UInt8]])
  func `a peer that leaves within a message has truncated it`(part: [UInt8]) throws {
    var (left, right) = try Connection.pair(framing: .stream) as (Connection?, Connection)
    try left?.sendRaw(part)
    left = nil
    #expect(throws: TransportError.truncated) { try right.receiveBytes() }
  }
}
