import HoldfastCore

/// What stands in for a device that has no identity, or cannot remember: whatever is asked, it answers `internal`.
public struct DeniedDevice<Hardware: Board & ~Copyable, Time: Clock>: ~Copyable {
  private var line: FramedLine<Hardware, Time>
  private let clock: Time

  public init(board: consuming Hardware, clock: Time) {
    self.clock = clock
    line = FramedLine(board, clock: clock)
  }

  /// Denies until the line ends, which a real one does not.
  public mutating func run() {
    var refusal = ByteBuffer<8>()
    do throws(EncodingFault) { try VerdictMessage.encode(unsealed: .internal, into: &refusal) } catch { return }
    while true {
      line.open(with: refusal.bytes)
      let deadline = clock.monotonicMilliseconds() + 30_000
      var message = Discarded()
      switch line.receive(into: &message, until: deadline) {
      case .ended: return
      case .emptyFrame: line.sendEmptyFrame()
      case .message, .unusable, .slow, .silence: continue
      }
    }
  }
}

/// Where messages go that nobody reads.
private struct Discarded: ByteSink {
  mutating func append(_ bytes: Span<UInt8>) throws(EncodingFault) {}
}
