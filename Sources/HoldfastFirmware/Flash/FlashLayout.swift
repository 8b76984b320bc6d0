/// What lies where in a device's flash: 128 KiB in pages of 4 KiB.
public enum FlashLayout {
  /// The unit of erasing, in bytes.
  public static let pageByteCount = 4096
  /// All of it.
  public static let byteCount = 32 * pageByteCount
  /// What the owner writes and the device only reads.
  static let provision = 0..<4 * pageByteCount
  /// Each slot of the journal.
  static let slotByteCount = 14 * pageByteCount
  /// Where the slots begin.
  static let slots = (first: 4 * pageByteCount, second: 18 * pageByteCount)
}
