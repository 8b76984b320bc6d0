import HoldfastCore
import HoldfastOpenSSL
import HoldfastTransport
import Testing

@testable import HoldfastDevice

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
    while status != .accepted && clock.monotonicMilliseconds() < end + 10_000 {
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
    let isOver = try #require(StopFlag())
    crowd.start {
      while !isOver.isRaised {
        line.writeIfTaken([0xff, 0xff, 0x00, 0x03, 0x85, 0x02, 0x00])
        try line.dropWhatCame()
      }
    }
    #expect(served.notices.wait(for: .connected(connection: 1)))
    try served.stop()
    isOver.raise()
    crowd.wait()
  }
}
