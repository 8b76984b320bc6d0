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
    var found: String?
    try search(path, overlap: texts.joined().map(\.count).max() ?? 0) { window in
      for (kind, all) in texts.enumerated() {
        for (index, text) in all.enumerated() where !isFound[kind][index] {
          isFound[kind][index] = window.firstRange(of: text) != nil
        }
        if isFound[kind].allSatisfy({ $0 }) { found = interpreters[kind].name }
      }
      return found != nil
    }
    return found
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
}
