import CBoard
import HoldfastFirmware

/// NOR flash, modelled in the board's PSRAM, which QEMU keeps in the image's file: what is programmed is in the file at
/// once, and killing QEMU is a power cut.
///
/// Behind the flash there is a simulated fuse: a word `n` other than 0 lets the power fail after `n` more words are programmed
/// or erased.
public struct BoardFlash: ~Copyable, FlashMemory {
  private var model: SimulatedFlash

  private static let base: UInt = 0x2100_0000
  private static let fuse: UInt = 0x2110_0000
  private static let blown: UInt32 = 0xFFFF_FFFF

  /// There is one flash on the board: make this once.
  public init() {
    let memory = unsafe UnsafeMutableRawBufferPointer(
      start: UnsafeMutableRawPointer(bitPattern: Self.base), count: FlashLayout.byteCount)
    model = unsafe SimulatedFlash(memory)
  }

  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get { model.bytes }
  }

  public mutating func program(_ word: UInt32, at offset: Int) throws(FlashFailure) {
    lookAtFuse()
    defer { burnFuse() }
    try model.program(word, at: offset)
  }

  public mutating func erasePage(at offset: Int) throws(FlashFailure) {
    lookAtFuse()
    defer { burnFuse() }
    try model.erasePage(at: offset)
  }

  private mutating func lookAtFuse() {
    let left = board_load(Self.fuse)
    model.remainingWordCount = left == 0 || left == Self.blown ? nil : Int(left)
  }

  private func burnFuse() {
    guard let left = model.remainingWordCount else { return }
    board_store(Self.fuse, left == 0 ? Self.blown : UInt32(left))
    if left == 0 { stop() }
  }
}
