import Glibc
import HoldfastCore
import HoldfastLinux

extension ExecutableImage {
  /// Returns the kind of interpreter that the program at `path` is or contains; nil if it is none that is known.
  ///
  /// An interpreter runs any program, so that its measurement does not show which one it runs. The search finds an interpreter
  /// by texts that it cannot do without: the names of the functions and variables through which it is used. It prevents
  /// mistakes; it does not withstand an owner who hides an interpreter from it.
  ///
  /// - Throws: `unreadable`.
  package static func interpreter(at path: String) throws(MeasurementError) -> String? {
    let texts = interpreters.map { $0.texts.map { Array($0.joined().utf8) + [0] } }
    var isFound = texts.map { $0.map { _ in false } }
    let overlap = texts.joined().map(\.count).max() ?? 0
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
      guard count > 0 else { return nil }
      let end = kept + count
      for (kind, all) in texts.enumerated() {
        for (index, text) in all.enumerated() where !isFound[kind][index] {
          isFound[kind][index] = contains(text, in: window, upTo: end)
        }
        if isFound[kind].allSatisfy({ $0 }) { return interpreters[kind].name }
      }
      kept = min(overlap, end)
      for index in 0..<kept { window[index] = window[end - kept + index] }
    }
  }

  /// The kinds of interpreters, with texts that end with a zero byte in each of their programs. They are in pieces, so that the
  /// search does not find this program.
  private static let interpreters: [(name: String, texts: [[String]])] = [
    ("a shell", [["PS", "4"], ["OPT", "IND"]]),
    ("a shell", [["PS", "4=+ "], ["OPT", "IND=1"]]),
    ("Python", [["Py_", "BytesMain"]]),
    ("Perl", [["perl_", "parse"]]),
    ("Ruby", [["ruby_", "run_node"]]),
    ("Lua", [["LUA_", "INIT"]]),
    ("Node.js", [["NODE_", "OPTIONS"]]),
    ("PHP", [["PHP_INI_", "SCAN_DIR"]]),
    ("Tcl", [["Tcl_", "MainEx"]]),
    ("Java", [["JLI_", "Launch"]]),
  ]

  private static func contains(_ text: [UInt8], in bytes: [UInt8], upTo end: Int) -> Bool {
    unsafe bytes.withUnsafeBytes { bytes in
      unsafe text.withUnsafeBytes { text in
        var position = 0
        while end - position >= text.count, let first = unsafe text.first {
          let start = unsafe bytes.baseAddress! + position
          guard let found = unsafe memchr(start, Int32(first), end - position - text.count + 1) else { return false }
          if unsafe memcmp(found, text.baseAddress!, text.count) == 0 { return true }
          position = unsafe UnsafeRawPointer(found) - bytes.baseAddress! + 1
        }
        return false
      }
    }
  }
}
