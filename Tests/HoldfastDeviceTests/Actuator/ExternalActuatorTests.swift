import Glibc
import HoldfastLinux
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// An external actuator whose messages are those of the test.
@Suite struct ExternalActuatorTests {
  private let place: TemporaryFolder
  private let notices = NoticeLog<ActuatorNotice>()

  init() throws { place = try TemporaryFolder() }

  /// An actuator at a socket, the far end of which is the test's.
  private func started() throws -> (actuator: ExternalActuator, far: PacketSocket, address: ActuatorAddress) {
    let path = place.file("actuator")
    let listener = try Listener(try Endpoint(parsing: "unix:\(path)"))
    let address = ActuatorAddress.socket(path: path)
    let made = Mutex<ExternalActuator?>(nil)
    let crowd = try Crowd()
    crowd.start { [notices] in
      let actuator = try ExternalActuator(at: address, timeoutMilliseconds: TestPeer.patienceMilliseconds) {
        notices.add($0)
      }
      made.withLock { $0 = actuator }
    }
    let far = PacketSocket(try listener.accept())
    #expect(try far.receive() == ActuatorCBOR.start)
    try far.send(hex("820281646f70656e"))
    crowd.wait()
    let actuator = try #require(made.withLock { $0 })
    #expect(notices.all == [.started(address, commandCount: 1)])
    return (actuator, far, address)
  }

  /// The outcome of the command `open` in a round.
  private func perform(_ sequence: UInt64, at actuator: ExternalActuator) throws -> [UInt8] {
    var client = ActuatorClient(actuator)
    let hasPlace = client.reservePlace()
    try #require(hasPlace)
    var result = ResultBuffer()
    try client.perform(Request(command: "open"), of: AcceptedRound(sequence: sequence), result: &result)
    return result.bytes.array
  }

  /// A late answer to the command of a round, whose number is below 24, with no result.
  private func late(_ sequence: UInt8) -> [UInt8] { [0x83, 0x00, 0x40, sequence] }

  @Test func `up to 16 late answers are said and dropped between two commands, and the next one ends the actuator`()
    throws
  {
    let (actuator, far, address) = try started()
    defer { actuator.stop() }
    let crowd = try Crowd()
    func dropSixteen(time: Int) throws {
      for sequence in 1...16 as ClosedRange<UInt8> {
        try far.send(late(sequence))
        #expect(notices.wait(for: .discarded(address, sequence: UInt64(sequence)), count: time))
      }
    }
    try dropSixteen(time: 1)
    // A command lets the count begin again.
    crowd.start {
      let result = try perform(17, at: actuator)
      #expect(result == [0x61])
    }
    #expect(try far.receive() == hex("860111646f70656e80f660"))
    try far.send(hex("8300416111"))
    crowd.wait()
    try dropSixteen(time: 2)
    try far.send(late(17))
    #expect(notices.wait(for: .lost(address, .badAnswer, nil)))
    #expect(!notices.all.contains(.discarded(address, sequence: 17)))
  }

  @Test func `late answers that come while a command is carried out count separately, and are not its outcome`() throws
  {
    let (actuator, far, address) = try started()
    defer { actuator.stop() }
    for (isWithin, count) in [(true, 16 as UInt8), (false, 17)] {
      let crowd = try Crowd()
      crowd.start {
        if isWithin {
          let result = try perform(200, at: actuator)
          #expect(result == [0x62])
        } else {
          let text: BoundedText<64> = "the actuator's answer was not as documented"
          #expect(throws: ActuatorFailure(.badAnswer, text: text)) { try perform(200, at: actuator) }
        }
      }
      _ = try far.receive()
      for sequence in 1...count { try far.send(late(sequence)) }
      if isWithin { try far.send(hex("8300416218c8")) }
      crowd.wait()
    }
    #expect(notices.all.count { if case .discarded = $0 { true } else { false } } == 32)
    #expect(notices.wait(for: .lost(address, .badAnswer, nil)))
  }

  @Test func `a program's answer that arrives together with another is said and dropped before the next command`()
    throws
  {
    let script = """
      #!/bin/sh
      read -r start
      echo '{"commands":["open"]}'
      while read -r command; do
        printf '%s\\n%s\\n' '{"sequence":7,"result":"opened"}' '{"sequence":6,"result":"late"}'
      done

      """
    let path = try place.makeFile("program", Array(script.utf8), mode: 0o700)
    let address = ActuatorAddress.lines(path: path)
    let actuator = try ExternalActuator(at: address, timeoutMilliseconds: TestPeer.patienceMilliseconds) {
      [notices] in notices.add($0)
    }
    defer { actuator.stop() }
    for count in 1...3 {
      #expect(try perform(7, at: actuator) == Array("opened".utf8))
      #expect(notices.wait(for: .discarded(address, sequence: 6), count: count))
    }
  }

  @Test func `an actuator that is stopped while it waits for commands ends at once`() throws {
    let (actuator, far, _) = try started()
    let crowd = try Crowd()
    let ended = try WakeUp()
    crowd.start {
      actuator.stop()
      ended.raise()
    }
    #expect(ended.wait(milliseconds: UInt64(TestPeer.patienceMilliseconds)))
    #expect(try far.receive().isEmpty)
    crowd.wait()
    var client = ActuatorClient(actuator)
    let hasPlace = client.reservePlace()
    #expect(!hasPlace)
  }
}

/// A socket whose packets are the messages.
private struct PacketSocket {
  private let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  func send(_ message: [UInt8]) throws {
    let count = unsafe Glibc.send(connection.file.descriptor, message, message.count, CInt(MSG_NOSIGNAL))
    try #require(count == message.count)
  }

  /// The next packet; none after the end.
  func receive() throws -> [UInt8] {
    var waited = pollfd(fd: connection.file.descriptor, events: CShort(POLLIN), revents: 0)
    try #require(unsafe poll(&waited, 1, CInt(TestPeer.patienceMilliseconds)) == 1)
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = unsafe recv(connection.file.descriptor, &buffer, buffer.count, 0)
    return Array(buffer[..<max(count, 0)])
  }
}
