import HoldfastCore

/// Messages on a line that has no connections: `u16(length)`, big-endian, and so many bytes.
///
/// Source: docs/protocol.md, "A device behind a serial line".
struct FramedLine<Device: Board & ~Copyable, Time: Clock & ~Copyable>: ~Copyable {
  var board: Device
  let clock: Time
  /// What is sent again and again until somebody answers; nothing where a round goes on.
  private var opening = ByteBuffer<64>()

  /// How long the line must be silent after bytes that are no message, in milliseconds.
  private static var silenceMilliseconds: UInt64 { 1000 }
  /// From the first byte of a message to its last.
  private static var messageMilliseconds: UInt64 { 10_000 }
  /// How often what opens a round is sent again while nobody answers.
  private static var repetitionMilliseconds: UInt64 { 2000 }

  init(_ board: consuming Device, clock: consuming Time) {
    self.board = board
    self.clock = clock
  }

  /// Sends what opens a round, which is at most 64 bytes.
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

  /// What the empty frame is answered with, before the next challenge.
  mutating func sendEmptyFrame() {
    send(Span())
  }

  /// Waits for a message, which takes the place of what is in `message`; what opened the round is sent again and again until its first byte has come.
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
        if opening.count > 0, now >= repetition {
          Self.transmit(opening.bytes, to: &board)
          repetition = now + Self.repetitionMilliseconds
        }
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

  private mutating func next(before whole: UInt64) -> Reception {
    let now = clock.monotonicMilliseconds()
    guard now < whole else { return .silence }
    return board.receive(until: min(whole, now + Self.silenceMilliseconds))
  }

  /// A message did not become whole: the line fell silent, or the sender is too slow.
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

/// What came along the line.
enum Arrival {
  case message(firstByteMilliseconds: UInt64)
  /// Somebody asks for a fresh challenge.
  case emptyFrame
  /// Bytes that are no message, and then a second of silence.
  case unusable
  /// A message that did not come whole in time, and then a second of silence.
  case slow
  /// Nothing in time.
  case silence
  case ended
}

/// What a device is soldered to: a serial line that leads to provers, and somebody who watches.
public protocol Board: ~Copyable {
  /// Waits for a byte from the line, until the clock's milliseconds have reached `deadlineMilliseconds`.
  mutating func receive(until deadlineMilliseconds: UInt64) -> Reception

  /// Sends bytes along the line.
  mutating func send(_ bytes: Span<UInt8>)

  /// Waits, deaf, until the clock's milliseconds have reached `milliseconds`.
  mutating func pause(until milliseconds: UInt64)

  /// Tells whoever watches.
  mutating func notify(_ notice: FirmwareNotice)
}

/// What came of waiting for a byte.
public enum Reception: Equatable {
  case byte(UInt8)
  case silence
  /// There is no line any more: only where the device is run as a program.
  case ended
}

/// Something that whoever watches a device may want to know. It holds no secret.
public enum FirmwareNotice: Equatable {
  /// It serves; `bootCount` counts its starts.
  case started(bootCount: UInt64)
  /// It cannot start, and denies everything.
  case fault(FirmwareFault)
  /// A round could not begin, and it denies everything.
  case sessionFault(SessionFault)
  /// A message has come whole; it is being answered.
  case answering
  /// It was answered.
  case answered(Status)
}
