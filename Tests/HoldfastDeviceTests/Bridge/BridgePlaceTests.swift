import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import TestSupport
import Testing

import HoldfastDevice

/// The only place of a bridge: who keeps it, and who has to make room.
@Suite struct BridgePlaceTests {
  private static let challenge: [UInt8] = [0x81, 0x01]
  private static let tokenUnknown: [UInt8] = [0x83, 0x03, 0x04, 0xf6]
  private static let fixed: [UInt8] = [UInt8](repeating: 7, count: 32)

  /// A line on which a prover has no time before a newcomer may have its place.
  private func line() throws -> BridgedLine {
    try BridgedLine(timing: .patient { $0.provingMilliseconds = 0 })
  }

  private func expectDisplaced(by newcomer: TestPeer, on line: BridgedLine, _ hardware: FakeHardware, _ old: TestPeer)
    throws
  {
    try hardware.answerEmptyFrame(with: [0x81, 0x02])
    #expect(try newcomer.receive() == [0x81, 0x02])
    old.expectEnd()
    #expect(line.notices.wait(for: .displaced(connection: 1)))
  }

  @Test func `a silent stranger makes room for a newcomer`() throws {
    let line = try line()
    let hardware = try line.hardware()
    let stranger = try line.connect(hardware, challenge: Self.challenge)
    try expectDisplaced(by: try line.connect(), on: line, hardware, stranger)
    // Each of them was served, so nobody was sent away.
    #expect(!line.notices.all.contains(.busy))
    #expect(line.stop())
  }

  @Test(
    arguments: [
      Status.tokenUnknown, .tokenInvalid, .deviceMismatch, .malformed, .busy, .tokenExpired, .tokenRevoked, .internal,
    ])
  func `a stranger that talks and is denied makes room, under a seal or not`(status: Status) throws {
    for seal: [UInt8] in [[0xf6], [0x41, 0x00]] {
      let line = try line()
      let hardware = try line.hardware()
      let stranger = try line.connect(hardware, challenge: Self.challenge)
      for _ in 0..<3 {
        try stranger.send([2])
        #expect(try hardware.peer.receive() == [2])
        let verdict = [0x83, 0x03, status.rawValue] + seal
        try hardware.peer.send(verdict)
        #expect(try stranger.receive() == verdict)
        guard status != .malformed || seal != [0xf6] else { return #expect(line.stop()) }
        try hardware.peer.send(Self.challenge)
        #expect(try stranger.receive() == Self.challenge)
      }
      try expectDisplaced(by: try line.connect(), on: line, hardware, stranger)
      #expect(line.stop())
    }
  }

  @Test(
    arguments: [
      [0x83, 0x03, 0x00, 0x41, 0x00], [0x83, 0x03, 0x00, 0xf6],
      [0x83, 0x16, 0x58, 0x41, 0x04] + fixed + fixed + [0x41, 0x00], [0x82, 0x18, 0x18, 0x58, 0x20] + fixed,
      [0x82, 0x18, 0x1a, 0x58, 0x20] + fixed,
    ] as [[UInt8]])
  func `what the device accepts keeps the place: a round, an activation granted or ended, an unlocking, then also mail`(
    answer: [UInt8]
  ) throws {
    let line = try line()
    let hardware = try line.hardware()
    let prover = try line.connect(hardware, challenge: Self.challenge)
    try prover.send([2])
    #expect(try hardware.peer.receive() == [2])
    for message in [answer, Self.challenge] {
      try hardware.peer.send(message)
      #expect(try prover.receive() == message)
    }
    #expect(try line.connect().unsealedStatus() == .busy)
    let (mail, result): ([UInt8], [UInt8]) = ([0x82, 0x07, 0xf6], [0x82, 0x08, 0x01])
    try prover.send(mail)
    #expect(try hardware.peer.receive() == mail)
    try hardware.peer.send(result)
    #expect(try prover.receive() == result)
    #expect(try line.connect().unsealedStatus() == .busy)
    #expect(line.stop())
  }

  @Test func `what the device does not accept ends what an acceptance has kept`() throws {
    let line = try line()
    let hardware = try line.hardware()
    let prover = try line.connect(hardware, challenge: Self.challenge)
    for verdict: [UInt8] in [[0x83, 0x03, 0x00, 0x41, 0x00], Self.tokenUnknown, Self.tokenUnknown] {
      try prover.send([2])
      #expect(try hardware.peer.receive() == [2])
      try hardware.peer.send(verdict)
      #expect(try prover.receive() == verdict)
      try hardware.peer.send(Self.challenge)
      #expect(try prover.receive() == Self.challenge)
    }
    try expectDisplaced(by: try line.connect(), on: line, hardware, prover)
    #expect(line.stop())
  }

  @Test func `a message that is judged is answered, whoever comes`() throws {
    let line = try line()
    let hardware = try line.hardware()
    let prover = try line.connect(hardware, challenge: Self.challenge)
    try prover.send([2])
    #expect(try hardware.peer.receive() == [2])
    #expect(try line.connect().unsealedStatus() == .busy)
    try hardware.peer.send(Self.tokenUnknown)
    #expect(try prover.receive() == Self.tokenUnknown)
    #expect(line.stop())
  }

  @Test func `a stranger that sends the next message at once makes room for a newcomer refused before`() throws {
    let line = try line()
    let hardware = try line.hardware()
    let stranger = try line.connect(hardware, challenge: Self.challenge)
    try stranger.send([2])
    #expect(try hardware.peer.receive() == [2])
    #expect(try line.connect().unsealedStatus() == .busy)
    try stranger.send([4])
    for message in [Self.tokenUnknown, Self.challenge] {
      try hardware.peer.send(message)
      #expect(try stranger.receive() == message)
    }
    stranger.expectEnd()
    #expect(line.notices.wait(for: .displaced(connection: 1)))
    let newcomer = try line.connect()
    // The stranger's next message has not reached the device.
    try hardware.answerEmptyFrame(with: [0x81, 0x02])
    #expect(try newcomer.receive() == [0x81, 0x02])
    #expect(line.stop())
  }

  @Test func `a terminal for provers takes nobody's place before something comes from it`() throws {
    let terminal = try SerialLine()
    let listener = try Listener(try Endpoint(parsing: "tty:\(terminal.path)"))
    let line = try BridgedLine(timing: .patient { $0.provingMilliseconds = 0 }, listeners: [listener])
    let hardware = try line.hardware()
    // Nobody has the place yet, so the terminal gets it.
    try hardware.answerEmptyFrame(with: [1])
    let prover = try line.connect(hardware, challenge: Self.challenge)
    #expect(line.notices.wait(for: .displaced(connection: 1)))
    // Meanwhile, the terminal is handed out several times.
    _ = poll(nil, 0, 500)
    try prover.send([2])
    #expect(try hardware.peer.receive() == [2])
    try hardware.peer.send(Self.tokenUnknown)
    #expect(try prover.receive() == Self.tokenUnknown)
    #expect(line.stop())
  }

  @Test func `a newcomer refused during a message that is then accepted does not get the place`() throws {
    let line = try line()
    let hardware = try line.hardware()
    let prover = try line.connect(hardware, challenge: Self.challenge)
    let accepted: [UInt8] = [0x83, 0x03, 0x00, 0x41, 0x00]
    let rounds: [([UInt8], [UInt8], Bool)] = [
      ([2], accepted, true), ([4], Self.tokenUnknown, false), ([6], accepted, false),
    ]
    for (message, verdict, isWatched) in rounds {
      try prover.send(message)
      #expect(try hardware.peer.receive() == message)
      if isWatched { #expect(try line.connect().unsealedStatus() == .busy) }
      for answer in [verdict, Self.challenge] {
        try hardware.peer.send(answer)
        #expect(try prover.receive() == answer)
      }
    }
    #expect(line.stop())
  }

  @Test func `a prover has its time, also after an unknown token`() throws {
    let line = try BridgedLine(timing: .patient { $0.provingMilliseconds = 600_000 })
    let hardware = try line.hardware()
    let prover = try line.connect(hardware, challenge: Self.challenge)
    #expect(try line.connect().unsealedStatus() == .busy)
    try prover.send([2])
    #expect(try hardware.peer.receive() == [2])
    try hardware.peer.send(Self.tokenUnknown)
    #expect(try prover.receive() == Self.tokenUnknown)
    #expect(try line.connect().unsealedStatus() == .busy)
    #expect(line.stop())
  }

  @Test func `only the first unknown token gives a prover its time again`() throws {
    let provingMilliseconds = 300
    let line = try BridgedLine(timing: .patient { $0.provingMilliseconds = provingMilliseconds })
    let hardware = try line.hardware()
    let stranger = try line.connect(hardware, challenge: Self.challenge)
    var end = Deadline.never
    while !end.hasPassed {
      try stranger.send([2])
      #expect(try hardware.peer.receive() == [2])
      for message in [Self.tokenUnknown, Self.challenge] {
        try hardware.peer.send(message)
        try #require(try stranger.receive() == message)
      }
      if end == .never { end = Deadline(afterMilliseconds: provingMilliseconds) }
    }
    try expectDisplaced(by: try line.connect(), on: line, hardware, stranger)
    #expect(line.stop())
  }
}
