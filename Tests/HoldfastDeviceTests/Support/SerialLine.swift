import Glibc
import Testing

/// The far end of a pseudo-terminal.
final class SerialLine: Sendable {
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

  /// Writes a whole frame. It waits while the line is full, as one is that was flooded until a moment ago.
  func writeFrame(_ message: [UInt8]) throws {
    var rest = [UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
    while !rest.isEmpty {
      try #require(isReady(for: POLLOUT, withinMilliseconds: Int32(TestPeer.patienceMilliseconds)))
      let count = unsafe write(descriptor, rest, rest.count)
      try #require(count > 0)
      rest.removeFirst(count)
    }
  }

  func writeIfTaken(_ bytes: [UInt8]) {
    _ = unsafe write(descriptor, bytes, bytes.count)
  }

  /// Reads whole frames for as long as one has begun.
  func dropWhatCame() throws {
    while isReady(for: POLLIN, withinMilliseconds: 0) { _ = try readFrame() }
  }

  func readFrame() throws -> [UInt8] {
    let length = try read(2)
    return try read(Int(length[0]) << 8 | Int(length[1]))
  }

  private func read(_ byteCount: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < byteCount {
      try #require(isReady(for: POLLIN, withinMilliseconds: Int32(TestPeer.patienceMilliseconds)))
      var part = [UInt8](repeating: 0, count: byteCount - bytes.count)
      let count = unsafe Glibc.read(descriptor, &part, part.count)
      try #require(count > 0)
      bytes += part[..<count]
    }
    return bytes
  }

  private func isReady(for event: Int32, withinMilliseconds milliseconds: Int32) -> Bool {
    var waited = pollfd(fd: descriptor, events: Int16(event), revents: 0)
    return unsafe poll(&waited, 1, milliseconds) == 1
  }
}
