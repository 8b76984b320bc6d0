import Glibc
import HoldfastCore
import HoldfastDevice
import HoldfastTransport
import Testing

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
}

/// The far end of a pseudo-terminal.
private final class SerialLine {
  let path: String
  private let descriptor: Int32

  init() throws {
    var far: Int32 = -1
    var near: Int32 = -1
    var name = [CChar](repeating: 0, count: 128)
    let result = unsafe openpty(&far, &near, &name, nil, nil)
    try #require(result == 0)
    close(near)
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

  func readFrame() throws -> [UInt8] {
    let length = try read(2)
    return try read(Int(length[0]) << 8 | Int(length[1]))
  }

  private func read(_ byteCount: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < byteCount {
      var part = [UInt8](repeating: 0, count: byteCount - bytes.count)
      let count = unsafe Glibc.read(descriptor, &part, part.count)
      try #require(count > 0)
      bytes += part[..<count]
    }
    return bytes
  }
}
