/// The notes of a target about an input say which readers took it, and what they read.
///
/// A rule says what must hold for every input. Notes say what has become of one, so that a reader that takes more than before, or reads
/// something else, is noticed at the inputs that are kept. Nothing is noted that differs between runs.
final class Notes: @unchecked Sendable {
  /// Those of the input that is judged; nil while the fuzzer runs, which has no use for them.
  @TaskLocal static var current: Notes?

  /// FNV-1a over all notes.
  private var digest: UInt32 = 0x811c_9dc5

  /// The digest in eight hexadecimal digits.
  var digits: String {
    let digits = String(digest, radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }

  func append(_ byte: UInt8) { digest = (digest ^ UInt32(byte)) &* 0x0100_0193 }
}

/// Notes bytes that a reader has made of the input. The fuzzer does not compute them.
package func note(_ bytes: @autoclosure () -> some Sequence<UInt8>) {
  guard let notes = Notes.current else { return }
  for byte in bytes() { notes.append(byte) }
  notes.append(0xff)
}

/// Notes what a reader has made of the input, as text. The fuzzer does not compute it.
package func note(_ text: @autoclosure () -> String) { note(text().utf8) }

/// Reads, and notes whether the reader took the input, or its reason.
@discardableResult
package func attempt<Result: ~Copyable>(_ read: () throws -> Result) -> Result? {
  do {
    let result = try read()
    note("taken")
    return result
  } catch {
    note("\(error)")
    return nil
  }
}
