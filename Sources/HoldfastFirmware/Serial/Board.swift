import HoldfastCore

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
