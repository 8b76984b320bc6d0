/// How words are told apart that are nearly the same.
enum Spelling {
  /// The most single changes between a word and what was meant by it.
  private static let greatestDistance = 2

  /// The word that fewest changes lead to, at most `limit` and fewer than it has letters.
  static func nearest(to word: String, among words: [String], within limit: Int = greatestDistance) -> String? {
    let near = words.map { ($0, distance(from: word, to: $0)) }.min { $0.1 < $1.1 }
    guard let near, near.1 <= limit, near.1 < word.count else { return nil }
    return near.0
  }

  /// How many letters are to be put in, taken out, replaced or swapped with their neighbour.
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
