/// The waits of one call that reads or writes: one before each further attempt, until the connection has ended.
///
/// The kernel reports an error of a socket once, perhaps to a call in the other direction. From then on, a Bluetooth socket whose
/// channel has ended has neither bytes nor an end to report, and poll(2) on it returns at once.
struct RepeatedWait: ~Copyable {
  private let file: OpenFile
  private var isRepeated = false
  private var hasEnded = false

  init(on file: OpenFile) { self.file = file }

  /// Must be called before each wait, after an attempt that would have blocked.
  ///
  /// - Throws: ``TransportError/closed`` if the last attempt was made after the end of the connection.
  mutating func begin() throws(TransportError) {
    guard !hasEnded else { throw .closed }
    if isRepeated { hasEnded = try file.hasEnded() }
    isRepeated = true
  }
}
