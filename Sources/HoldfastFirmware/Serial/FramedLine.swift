import HoldfastCore

/// A line without connections that carries messages. A frame is `u16(length)`, big-endian, and that many bytes.
///
/// Source: docs/protocol.md, "A device behind a serial line".
struct FramedLine<Device: Board & ~Copyable, Time: Clock & ~Copyable>: ~Copyable {
  var board: Device
  let clock: Time
  /// The message that opened the round, repeated until a peer answers; empty while a round is under way.
  private var opening = ChallengeBuffer()

  /// The silence that ends bytes that are no message, in milliseconds.
  private static var silenceMilliseconds: UInt64 { UInt64(Limit.silence.everywhere) }
  /// The time from the first byte of a message to its last, in milliseconds.
  private static var messageMilliseconds: UInt64 { UInt64(Limit.wholeMessage.everywhere) }
  /// The interval at which the message that opened the round is repeated, in milliseconds.
  private static var repetitionMilliseconds: UInt64 { UInt64(Limit.repetition.everywhere) }

  init(_ board: consuming Device, clock: consuming Time) {
    self.board = board
    self.clock = clock
  }

  /// Sends the message that opens a round, at most 64 bytes. ``receive(into:until:)`` repeats it.
  mutating func open(with message: Span<UInt8>) {
    opening.removeAll()
    do throws(EncodingFault) { try opening.append(message) } catch { return }
    Self.transmit(message, to: &board)
  }

  /// Sends a message that is not repeated.
  mutating func send(_ message: Span<UInt8>) {
    opening.removeAll()
    Self.transmit(message, to: &board)
  }

  private static func transmit(_ message: Span<UInt8>, to board: inout Device) {
    var head = ByteBuffer<2>()
    do throws(EncodingFault) { try head.append(bigEndian: UInt16(message.count)) } catch { return }
    board.send(head.bytes)
    board.send(message)
  }

  /// Sends the empty frame, which answers an empty frame and precedes the next challenge.
  mutating func sendEmptyFrame() {
    send(Span())
  }

  /// Waits for a message and replaces the contents of `message` with it. Repeats the message that opened the round until the
  /// first byte arrives.
  mutating func receive(into message: inout MessageBuffer, until deadline: UInt64) -> Arrival {
    message.removeAll()
    var repetition = clock.monotonicMilliseconds() + Self.repetitionMilliseconds
    while true {
      switch board.receive(until: opening.count == 0 ? deadline : min(deadline, repetition)) {
      case .byte(let first): return finish(first, into: &message)
      case .ended: return .ended
      case .silence:
        let now = clock.monotonicMilliseconds()
        if now >= deadline { return .silence }
        // A board is silent only once the time has come, here that of the repetition.
        Self.transmit(opening.bytes, to: &board)
        repetition = now + Self.repetitionMilliseconds
      }
    }
  }

  private mutating func finish(_ first: UInt8, into message: inout MessageBuffer) -> Arrival {
    let start = clock.monotonicMilliseconds()
    let whole = start + Self.messageMilliseconds
    guard case .byte(let second) = next(before: whole) else { return interrupted(whole) }
    let byteCount = Int(first) << 8 | Int(second)
    guard byteCount > 0 else { return .emptyFrame }
    guard byteCount <= Message.maximumByteCount else { return dropUntilSilence(.unusable) }
    for _ in 0..<byteCount {
      guard case .byte(let byte) = next(before: whole) else { return interrupted(whole) }
      do throws(EncodingFault) { try message.append(byte) } catch { return dropUntilSilence(.unusable) }
    }
    return .message(firstByteMilliseconds: start)
  }

  private mutating func next(before whole: UInt64) -> ReceivedByte {
    let now = clock.monotonicMilliseconds()
    guard now < whole else { return .silence }
    return board.receive(until: min(whole, now + Self.silenceMilliseconds))
  }

  /// Returns the result for an incomplete message: the line fell silent, or the sender is too slow.
  private mutating func interrupted(_ whole: UInt64) -> Arrival {
    clock.monotonicMilliseconds() < whole ? .unusable : dropUntilSilence(.slow)
  }

  private mutating func dropUntilSilence(_ arrival: Arrival) -> Arrival {
    while true {
      switch board.receive(until: clock.monotonicMilliseconds() + Self.silenceMilliseconds) {
      case .byte: continue
      case .silence: return arrival
      case .ended: return .ended
      }
    }
  }
}

/// The result of receiving on a line.
enum Arrival {
  case message(firstByteMilliseconds: UInt64)
  /// An empty frame: the peer asks for a fresh challenge.
  case emptyFrame
  /// Bytes that are no message, followed by a second of silence.
  case unusable
  /// A message that was not complete in time, followed by a second of silence.
  case slow
  /// No byte before the deadline.
  case silence
  case ended
}

/// The hardware around a device: a serial line that leads to provers, and an observer.
public protocol Board: ~Copyable {
  /// Waits for a byte from the line until the device's clock reaches `deadlineMilliseconds`. It must not fall silent earlier.
  mutating func receive(until deadlineMilliseconds: UInt64) -> ReceivedByte

  /// Sends bytes along the line.
  mutating func send(_ bytes: Span<UInt8>)

  /// Waits, without receiving, until the clock reaches `milliseconds`.
  mutating func pause(until milliseconds: UInt64)

  /// Reports an event to the observer.
  mutating func notify(_ notice: FirmwareNotice)
}

/// The result of waiting for a byte.
public enum ReceivedByte: Equatable {
  /// A byte arrived.
  case byte(UInt8)
  /// No byte arrived before the deadline.
  case silence
  /// The line has ended. This happens only if the device runs as a program.
  case ended
}

/// An event for the observer of a device. It holds no secret.
public enum FirmwareNotice: Equatable {
  /// The device serves. `bootCount` is the number of its starts.
  case started(bootCount: UInt64)
  /// The device cannot start, and denies everything.
  case fault(FirmwareFault)
  /// A round could not begin, and the device denies everything.
  case sessionFault(DeviceFault)
  /// A message is complete, and the device begins to answer it.
  case answering
  /// The device has made its answer.
  case answered(Status)
}
