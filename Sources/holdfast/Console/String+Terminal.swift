extension String {
  /// The text on one line, without anything that a terminal obeys: control characters and changes of direction are
  /// written as `\\u{1b}`.
  var printable: String {
    guard unicodeScalars.contains(where: \.commandsTerminal) else { return self }
    var text = ""
    for scalar in unicodeScalars {
      if scalar.commandsTerminal {
        text += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  /// The text as a shell takes it for one word.
  var shellWord: String {
    let isPlain = !isEmpty && unicodeScalars.allSatisfy { $0.isPlainInShell }
    if isPlain { return self }
    var text = "'"
    for scalar in unicodeScalars {
      if scalar == "'" { text += "'\\''" } else { text.unicodeScalars.append(scalar) }
    }
    return text + "'"
  }
}

extension Unicode.Scalar {
  fileprivate var commandsTerminal: Bool {
    switch value {
    case 0..<0x20, 0x7f..<0xa0, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069: true
    default: false
    }
  }

  fileprivate var isPlainInShell: Bool {
    switch self {
    case "a"..."z", "A"..."Z", "0"..."9", "/", ".", "_", "-", ",", ":", "=", "+", "@", "%": true
    default: value >= 0x80
    }
  }
}
