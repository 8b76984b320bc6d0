import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// The vectors `Frames` at a device: the bytes are sent as they are, and the device's answers are counted.
///
/// A device answers each message here as malformed, because none is a message of a prover. On a stream that ends the connection, so
/// that only the first message can be judged; on a serial line, it does not. Source: docs/protocol.md, Frames.
struct TargetFrames {
  private let stream: [UInt8]
  private let isLine: Bool
  private let reading: FrameReading
  private let isValid: Bool

  /// The time without an answer after which none is expected on a stream.
  static let quietMilliseconds = 300
  /// The same on a line after a fault: after a second of silence, the device begins a new frame.
  static let lineQuietMilliseconds = 2500

  init(_ vector: VectorTest, isLine: Bool) throws(VectorFault) {
    stream = try vector.bytes("stream")
    self.isLine = isLine
    reading = FrameReading(stream)
    isValid = vector.result == .valid
  }

  func outcome(at device: inout TargetDevice) throws(TransportError) -> Outcome {
    guard device.hasStream else { return .skipped("the endpoint has packets, not a stream") }
    guard isLine == device.isSerial else {
      return .skipped(isLine ? "empty frames are for serial lines" : "a serial line has empty frames")
    }
    if device.isTerminal { return try outcomeOnLine(&device) }
    guard reading.isDecidedByFirstMessage else {
      return .skipped("a stream may end with the first message that is malformed")
    }
    var expected = reading.expected
    if reading.fault == .length { expected.malformedCount += 1 }
    // An empty frame where none may be is malformed.
    if reading.fault == nil, !isValid { expected = FrameAnswers(malformedCount: 1) }
    let seen = try device.answers(toBytes: stream, expected: expected, quietMilliseconds: Self.quietMilliseconds)
    let hasAnswered = seen.malformedCount > 0
    switch reading.fault {
    case nil where isValid:
      return seen == reading.expected ? .accepted : .failed("\(seen)")
    case nil where seen.emptyCount > 0: return .accepted
    case nil: return hasAnswered ? .refused("malformed") : .failed("no answer")
    // It is answered although it is not complete.
    case .length: return hasAnswered ? .refused("malformed") : .accepted
    case .cut: return hasAnswered || seen.otherCount > 0 ? .accepted : .refused("no answer before the rest")
    }
  }

  private func outcomeOnLine(_ device: inout TargetDevice) throws(TransportError) -> Outcome {
    let expected = reading.expected
    // An empty frame behind the bytes is answered only if the device knows where the last message ends.
    let whole = FrameAnswers(malformedCount: expected.malformedCount, emptyCount: expected.emptyCount + 1)
    switch reading.fault {
    case nil:
      let seen = try device.answers(
        toBytes: stream + [0, 0], expected: whole, quietMilliseconds: Self.quietMilliseconds)
      return seen == whole ? .accepted : .failed("\(seen)")
    case .length:
      let seen = try device.answers(
        toBytes: stream + [0, 0], expected: expected, quietMilliseconds: Self.lineQuietMilliseconds)
      guard seen.malformedCount >= expected.malformedCount, seen.otherCount == 0 else { return .failed("\(seen)") }
      return seen.emptyCount < whole.emptyCount ? .refused("dropped") : .accepted
    case .cut:
      let seen = try device.answers(
        toBytes: stream, expected: expected, quietMilliseconds: Self.lineQuietMilliseconds)
      return seen == expected ? .refused("no answer before the rest") : .accepted
    }
  }
}

/// A device's answers to bytes.
struct FrameAnswers: Equatable, CustomStringConvertible {
  var malformedCount = 0
  var emptyCount = 0
  /// The verdicts that do not say malformed. None is due, as no message is complete and well-formed.
  var otherCount = 0

  var description: String {
    "\(malformedCount) answers malformed, \(emptyCount) empty frames, and \(otherCount) other verdicts"
  }
}

/// A reading of a stream's frames by the lengths in it.
private struct FrameReading {
  /// A fault at the end of a stream.
  enum Fault {
    /// The length is above the limit.
    case length
    /// The stream ends within a frame.
    case cut
  }

  private(set) var expected = FrameAnswers()
  private(set) var fault: Fault?
  /// Whether nothing follows the first message that is not empty.
  private(set) var isDecidedByFirstMessage = true

  init(_ stream: [UInt8]) {
    var rest = stream[...]
    while !rest.isEmpty {
      if expected.malformedCount > 0 { isDecidedByFirstMessage = false }
      guard rest.count >= 2 else {
        fault = .cut
        return
      }
      let count = Int(rest[rest.startIndex]) << 8 | Int(rest[rest.startIndex + 1])
      guard count <= Connection.maximumMessageByteCount, rest.count >= 2 + count else {
        fault = count > Connection.maximumMessageByteCount ? .length : .cut
        return
      }
      if count == 0 { expected.emptyCount += 1 } else { expected.malformedCount += 1 }
      rest = rest.dropFirst(2 + count)
    }
  }
}
