import Glibc
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

/// The far end of a pseudo-terminal.
private final class SerialLine: Sendable {
  let path: String
  private let descriptor: Int32

  init() throws {
    var far: Int32 = -1
    var near: Int32 = -1
    var name = [CChar](repeating: 0, count: 128)
    let result = unsafe openpty(&far, &near, &name, nil, nil)
    try #require(result == 0)
    close(near)
    _ = fcntl(far, F_SETFL, O_NONBLOCK)
    descriptor = far
    path = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    close(descriptor)
  }

  func writeFrame(_ message: [UInt8]) throws {
    let frame = [UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
    let count = unsafe write(descriptor, frame, frame.count)
    try #require(count == frame.count)
  }

  func writeIfTaken(_ bytes: [UInt8]) {
    _ = unsafe write(descriptor, bytes, bytes.count)
  }

  /// Reads whole frames for as long as one has begun.
  func dropWhatCame() throws {
    while isReadable(withinMilliseconds: 0) { _ = try readFrame() }
  }

  func readFrame() throws -> [UInt8] {
    let length = try read(2)
    return try read(Int(length[0]) << 8 | Int(length[1]))
  }

  private func read(_ byteCount: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < byteCount {
      try #require(isReadable(withinMilliseconds: 10_000))
      var part = [UInt8](repeating: 0, count: byteCount - bytes.count)
      let count = unsafe Glibc.read(descriptor, &part, part.count)
      try #require(count > 0)
      bytes += part[..<count]
    }
    return bytes
  }

  private func isReadable(withinMilliseconds milliseconds: Int32) -> Bool {
    var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&waited, 1, milliseconds) == 1
  }
}
