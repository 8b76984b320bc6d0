import Glibc
import HoldfastCore
import HoldfastLinux

extension ExecutableImage {
  /// Reads the program at `path` in windows, until `body` returns true or the program ends.
  ///
  /// - Parameters:
  ///   - overlap: The number of bytes at the end of a window with which the next one begins.
  ///   - body: The search in a window.
  /// - Throws: `unreadable`.
  static func search(
    _ path: String, overlap: Int, _ body: (ArraySlice<UInt8>) -> Bool
  ) throws(MeasurementError) {
    let file = try HostFiles().open(path, as: .executable)
    var window = [UInt8](repeating: 0, count: Measurer.chunkByteCount)
    var kept = 0
    while true {
      let count: Int
      do throws(SystemError) {
        var span = window.mutableSpan
        var rest = span._mutatingExtracting(droppingFirst: kept)
        count = try file.read(into: &rest)
      } catch { throw .unreadable(.executable, code: error.number) }
      guard count > 0 else { return }
      let end = kept + count
      if body(window[..<end]) { return }
      kept = min(overlap, end)
      for index in 0..<kept { window[index] = window[end - kept + index] }
    }
  }
}

extension ArraySlice<UInt8> {
  /// Returns where `text` begins and ends for the first time; nil if it does not occur.
  func firstRange(of text: [UInt8]) -> Range<Int>? {
    var rest = self
    while rest.count >= text.count, let start = rest.firstPlace(of: text[0], before: rest.count - text.count + 1) {
      if self[start..<start + text.count].elementsEqual(text) { return start..<start + text.count }
      rest = rest[(start + 1)...]
    }
    return nil
  }

  /// Returns the first place of a byte among the first `count` ones. Source: memchr(3).
  private func firstPlace(of byte: UInt8, before count: Int) -> Int? {
    let offset: Int? = unsafe withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress, let found = unsafe memchr(base, Int32(byte), count) else { return nil }
      return unsafe UnsafeRawPointer(found) - base
    }
    return offset.map { startIndex + $0 }
  }
}
