import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import Testing

import HoldfastDevice

@Suite struct SerialLineTests {
  @Test func `a serial line is served round after round, and a stop ends it`() throws {
    let line = try SerialLine()
    let device = try TestDevice()
    let served = try ServedDevice(device, scheme: "tty", path: line.path)
    let prover = try device.prover()
    for (command, result) in [("unlock", "unlocked"), ("lock", "locked")] {
      let answer = try prover.answer(try line.readFrame(), command: command)
      try line.writeFrame(answer.message)
      #expect(try prover.open(try line.readFrame(), after: answer).result == result)
    }
    try served.stop()
  }

  @Test func `an empty frame abandons a round: it comes back, and a fresh challenge with it`() throws {
    let line = try SerialLine()
    let device = try TestDevice()
    let served = try ServedDevice(device, scheme: "tty", path: line.path)
    let prover = try device.prover()
    let abandoned = try line.readFrame()
    try line.writeFrame([])
    #expect(try line.readFrame().isEmpty)
    let fresh = try line.readFrame()
    #expect(try Challenge(fresh.span).deviceID == device.folder.descriptor.deviceID)
    #expect(fresh != abandoned)
    try line.writeFrame(try prover.answer(abandoned, command: "unlock").message)
    #expect(try line.readFrame() == [0x83, 0x03, 0x06, 0xf6])
    let answer = try prover.answer(try line.readFrame(), command: "unlock")
    try line.writeFrame(answer.message)
    #expect(try prover.open(try line.readFrame(), after: answer).result == "unlocked")
    try served.stop()
  }

  @Test func `on a socket that stands in for a line, each empty frame is answered`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device, scheme: "unix-stream")
    let peer = try served.connect()
    var challenges: Set<[UInt8]> = [try peer.challenge()]
    for _ in 0..<3 { try peer.connection.sendEmptyFrame(by: Deadline(afterMilliseconds: 5000)) }
    for _ in 0..<3 {
      #expect(throws: TransportError.emptyFrame) { try peer.receive() }
      challenges.insert(try peer.challenge())
    }
    #expect(challenges.count == 4)
    try peer.connection.sendEmptyFrame(by: Deadline(afterMilliseconds: 5000))
    #expect(throws: TransportError.emptyFrame) { try peer.receive() }
    #expect(try peer.round(try device.prover()).status == .accepted)
    try served.stop()
  }

  @Test func `a prover finds the open challenge of a line that was served long before it came`() throws {
    let line = try SerialLine()
    let device = try TestDevice()
    let timing = ServerTiming(answerMilliseconds: 20)
    let served = try ServedDevice(device, scheme: "tty", path: line.path, options: ServerOptions(timing: timing))
    // What was sent to nobody waits in the line: challenges, and that they have expired.
    #expect(served.notices.wait(for: .answered(connection: 2, .challengeExpired)))
    try line.writeFrame([])
    while try !line.readFrame().isEmpty {}
    let challenge = try line.readFrame()
    #expect(try Challenge(challenge.span).deviceID == device.folder.descriptor.deviceID)
    try served.stop()
  }

  @Test func `a line that stays silent is challenged again and again`() throws {
    let line = try SerialLine()
    let device = try TestDevice()
    let timing = ServerTiming(answerMilliseconds: 20)
    let served = try ServedDevice(device, scheme: "tty", path: line.path, options: ServerOptions(timing: timing))
    for _ in 0..<5 {
      let challenge = try line.readFrame()
      #expect(try Challenge(challenge.span).deviceID == device.folder.descriptor.deviceID)
      #expect(try line.readFrame() == [0x83, 0x03, 0x0c, 0xf6])
    }
    try served.stop()
  }

  @Test func `a flood of garbage holds a line for as long as it lasts, and no longer`() throws {
    let line = try SerialLine()
    let device = try TestDevice()
    let timing = ServerTiming(answerMilliseconds: 200, messageMilliseconds: 200)
    let served = try ServedDevice(device, scheme: "tty", path: line.path, options: ServerOptions(timing: timing))
    // Lengths that no message has, lengths of messages, and what is none: for longer than any deadline.
    let clock = SystemClock()
    let end = clock.monotonicMilliseconds() + 900
    while clock.monotonicMilliseconds() < end {
      line.writeIfTaken([0xff, 0xff, 0x00, 0x03, 0x85, 0x02, 0x00, 0x00, 0x00, 0x10])
      try line.dropWhatCame()
    }
    // The line is silent from here on, and each challenge is a fresh one.
    let prover = try device.prover()
    var status = Status.malformed
    while status != .accepted && clock.monotonicMilliseconds() < end + 60_000 {
      let frame = try line.readFrame()
      guard (try? Challenge(frame.span)) != nil else { continue }
      let answer = try prover.answer(frame, command: "unlock")
      try line.writeFrame(answer.message)
      status = (try? prover.open(try line.readFrame(), after: answer).status) ?? .malformed
    }
    #expect(status == .accepted)
    try served.stop()
  }

  @Test func `a stop ends a line that is being flooded`() throws {
    let line = try SerialLine()
    let device = try TestDevice()
    let served = try ServedDevice(device, scheme: "tty", path: line.path)
    let crowd = try Crowd()
    let isOver = try WakeUp()
    crowd.start {
      while !isOver.isRaised {
        line.writeIfTaken([0xff, 0xff, 0x00, 0x03, 0x85, 0x02, 0x00])
        try line.dropWhatCame()
      }
    }
    #expect(served.notices.wait(for: .connected(connection: 1, nil)))
    try served.stop()
    isOver.raise()
    crowd.wait()
  }
}
