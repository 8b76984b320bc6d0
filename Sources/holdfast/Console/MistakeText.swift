import HoldfastJSON

extension JSONMistake {
  /// What is wrong with the file of that name, in one sentence. It repeats names of members, and no values.
  func text(in file: String) -> String {
    let place = line.map { "\(file), line \($0)" } ?? file
    // What is not JSON has no members: it may be anything, a secret too.
    if case .syntax = expectation { return "\(place): this is not JSON with integers as its only numbers" }
    return path.isEmpty ? "\(place): \(explanation)" : "\(place): \(pathText.shortened) \(explanation)"
  }

  private var explanation: String {
    let isWhole = path.isEmpty
    switch expectation {
    case .presence: return "is missing"
    case .knownMember(let names):
      guard case .member(let name)? = path.last, let near = Spelling.nearest(to: name, among: names) else {
        return "is not a member that there is; there are \(names.joined(separator: ", "))"
      }
      return "is not a member that there is: did you mean \(near)?"
    case .uniqueMember: return "is there twice"
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
    case .hexadecimal(let count): return "must have \(count) hexadecimal digits in lower case"
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
  /// The beginning of a way whose names a file may make as long as it likes.
  fileprivate var shortened: String { unicodeScalars.count <= 160 ? self : String(prefix(160)) + "…" }
}
