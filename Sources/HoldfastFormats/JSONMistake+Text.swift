extension JSONMistake {
  /// Describes the mistake in a file in one sentence, which repeats names of members but no values.
  package func text(in file: String) -> String {
    "\(line.map { "\(file), line \($0)" } ?? file): \(text)"
  }

  /// Describes the mistake without its place, and repeats names of members but no values.
  package var text: String {
    // Text that is not JSON has no members and could be anything, even a secret.
    if case .syntax = expectation { return "this is not JSON whose numbers are all integers" }
    return path.isEmpty ? explanation : "\(pathText.shortened) \(explanation)"
  }

  private var explanation: String {
    let isWhole = path.isEmpty
    switch expectation {
    case .presence: return "is missing"
    case .knownMember([]): return "is not a known member: there are none"
    case .knownMember(let names):
      guard case .member(let name)? = path.last, let near = Spelling.nearest(to: name, among: names) else {
        return "is not a known member; the members are \(names.joined(separator: ", "))"
      }
      return "is not a known member: did you mean \(near)?"
    case .uniqueMember: return "occurs twice"
    case .flag: return "must be true or false"
    case .integer(let range):
      if range.lowerBound == range.upperBound { return "must be \(range.lowerBound)" }
      let end = range.upperBound == (1 << 53) - 1 ? "2^53 - 1" : "\(range.upperBound)"
      return "must be an integer from \(range.lowerBound) to \(end)"
    case .text(let texts):
      let isElement = if case .element? = path.last { true } else { false }
      return "must be one of \(texts.joined(separator: ", "))\(isElement ? ", each once" : "")"
    case .byteCount(let range):
      return "must have \(range.lowerBound) to \(range.upperBound) bytes"
    case .hexadecimal(let count): return "must have \(count) hexadecimal digits in lowercase"
    case .form(let words): return "must be \(words)"
    case .object: return isWhole ? "it must be an object, {…}" : "must be an object, {…}"
    case .array(nil): return "must be an array, […]"
    case .array(let count?): return "must be an array of \(count)"
    case .atMost(let limit): return "has more than \(limit) members"
    case .syntax: return "is not JSON"
    case .fewerLevels: return isWhole ? "it has more than 16 levels" : "has more than 16 levels"
    case .shorterText(let limit): return "it has more than \(limit) bytes"
    }
  }
}

extension String {
  /// The text, shortened because a file may contain names of any length.
  fileprivate var shortened: String { unicodeScalars.count <= 160 ? self : String(prefix(160)) + "…" }
}

/// The comparison of words that differ little.
package enum Spelling {
  /// The largest distance between a word and the intended one.
  package static let greatestDistance = 2

  /// Returns the word at the smallest distance, which is at most `limit` and less than the length of `word`.
  package static func nearest(to word: String, among words: [String], within limit: Int = greatestDistance) -> String? {
    let near = words.map { ($0, distance(from: word, to: $0)) }.min { $0.1 < $1.1 }
    guard let near, near.1 <= limit, near.1 < word.count else { return nil }
    return near.0
  }

  /// Returns the number of letters to insert, delete, replace or swap with their neighbour.
  ///
  /// Source: the optimal string alignment distance.
  private static func distance(from first: String, to second: String) -> Int {
    let (first, second) = (Array(first.unicodeScalars), Array(second.unicodeScalars))
    guard first.count <= 64, second.count <= 64 else { return .max }
    var rows = [Array(0...second.count)]
    for i in 0..<first.count {
      var row = [i + 1]
      for j in 0..<second.count {
        var least = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (first[i] == second[j] ? 0 : 1))
        if i > 0, j > 0, first[i] == second[j - 1], first[i - 1] == second[j] {
          least = min(least, rows[i - 1][j - 1] + 1)
        }
        row.append(least)
      }
      rows.append(row)
    }
    return rows[first.count][second.count]
  }
}
