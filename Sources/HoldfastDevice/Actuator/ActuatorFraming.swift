/// The method that separates the messages to and from an external actuator.
package enum ActuatorFraming: Sendable, Equatable {
  /// A two-byte length, big-endian, before each message.
  case lengths
  /// A newline after each message.
  case lines
  /// Each packet is a message.
  case packets

  /// Returns `message` as it is sent.
  package func frame(_ message: [UInt8]) -> [UInt8] {
    switch self {
    case .lengths: [UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
    case .lines: message + [0x0a]
    case .packets: message
    }
  }
}

/// The bytes from an external actuator that are not yet taken as messages.
package struct ActuatorInput {
  private let framing: ActuatorFraming
  private let maximumByteCount: Int
  private var bytes: [UInt8] = []

  /// Makes an empty buffer, for messages of at most that many bytes.
  package init(framing: ActuatorFraming, maximumByteCount: Int) {
    (self.framing, self.maximumByteCount) = (framing, maximumByteCount)
  }

  /// Whether a message has begun.
  package var hasBegun: Bool { !bytes.isEmpty }

  /// Adds bytes that were read; of packets, exactly one.
  package mutating func append(_ read: ArraySlice<UInt8>) {
    bytes.append(contentsOf: read)
  }

  /// Takes the next message; nil if there is no whole one.
  ///
  /// - Throws: `tooLong`, also for a message that has not ended yet, and `malformed` for an empty one.
  package mutating func next() throws(ActuatorMessageFault) -> [UInt8]? {
    let message: ArraySlice<UInt8>
    let end: Int
    switch framing {
    case .lengths:
      guard bytes.count >= 2 else { return nil }
      let byteCount = Int(bytes[0]) << 8 | Int(bytes[1])
      guard byteCount <= maximumByteCount else { throw .tooLong }
      guard byteCount > 0 else { throw .malformed }
      end = 2 + byteCount
      guard bytes.count >= end else { return nil }
      message = bytes[2..<end]
    case .lines:
      guard let newline = bytes.firstIndex(of: 0x0a) else {
        guard bytes.count <= maximumByteCount else { throw .tooLong }
        return nil
      }
      (message, end) = (bytes[..<newline], newline + 1)
    case .packets:
      guard !bytes.isEmpty else { return nil }
      (message, end) = (bytes[...], bytes.count)
    }
    guard message.count <= maximumByteCount else { throw .tooLong }
    let taken = Array(message)
    bytes.removeFirst(end)
    return taken
  }
}
