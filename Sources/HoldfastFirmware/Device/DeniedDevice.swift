import HoldfastCore

/// What stands in for a device that has no identity, or cannot remember: whatever is asked, it answers `internal`.
public struct DeniedDevice<Hardware: Board & ~Copyable, Time: Clock>: ~Copyable {
  private var line: FramedLine<Hardware, Time>
  private var message = MessageBuffer()

  public init(board: consuming Hardware, clock: Time) {
    line = FramedLine(board, clock: clock)
  }

  /// Denies until the line ends, which a real one does not.
  public mutating func run() {
    line.deny(&message)
  }
}

extension FramedLine where Device: ~Copyable, Time: ~Copyable {
  /// Answers `internal` to everything, until the line ends.
  mutating func deny(_ message: inout MessageBuffer) {
    var refusal = ByteBuffer<8>()
    do throws(EncodingFault) { try VerdictMessage.encode(unsealed: .internal, into: &refusal) } catch { return }
    while true {
      open(with: refusal.bytes)
      switch receive(into: &message, until: clock.monotonicMilliseconds() + 30_000) {
      case .ended: return
      case .emptyFrame: sendEmptyFrame()
      case .message, .unusable, .slow, .silence: continue
      }
    }
  }
}
