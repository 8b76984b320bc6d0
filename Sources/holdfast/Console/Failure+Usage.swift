import ArgumentParser
import HoldfastCore
import HoldfastFormats

extension Failure {
  /// Creates the failure for arguments that do not fit; nil for a request for help, which is not an error.
  package init?(parsing error: any Error, of arguments: Arguments) {
    guard Holdfast.exitCode(for: error) != .success else { return nil }
    // Every process of this host can read the arguments, so a code in them is refused and not repeated in the message.
    guard !arguments.words.contains(where: { OneUseCode(Array($0.utf8).span) != nil }) else {
      self.init(
        secretGivenTo: TypingError.place(of: arguments.words).text,
        hint:
          "leave out the code and type it when asked; the code was exposed, so ask the device's owner for another one")
      return
    }
    if let mistake = TypingError(in: arguments.words) {
      self = mistake.failure
      return
    }
    let usage = Holdfast.fullMessage(for: error).split(separator: "\n").first { $0.hasPrefix("Usage: ") }
    let help = "see \(TypingError.place(of: arguments.words).text) --help"
    self.init(
      .usage, Holdfast.message(for: error).withoutCapital,
      hint: usage.map { "usage: \($0.dropFirst(7)); \(help)" } ?? help)
  }
}

/// A verb or option that does not exist, or a number that was taken for an option. The parser's message does not name
/// it, because the parser first looks for missing arguments.
package enum TypingError {
  case verb(String, suggestion: String?, at: Syntax.Place)
  case option(String, suggestion: String?, at: Syntax.Place)
  case negativeNumber(String, option: String, at: Syntax.Place)
  case repetition(String, at: Syntax.Place)

  /// Looks for such a mistake in arguments that the parser refused.
  package init?(in words: [String]) {
    let place = Self.place(of: words)
    var rest = Self.withoutHelp(words).dropFirst(place.words.count)
    // `--json` applies to every verb and may come before the wrong one.
    if !place.command.verbs.isEmpty { rest = rest.drop { $0 == "--json" } }
    if let word = rest.first, !word.hasPrefix("-"), !place.command.verbs.isEmpty {
      let suggestion = Self.verb(like: word, at: place)
      if suggestion != nil || place.command.configuration.defaultSubcommand == nil {
        self = .verb(word, suggestion: suggestion, at: place)
        return
      }
    }
    guard let mistake = Self.optionMistake(in: rest, at: place.leaf) else { return nil }
    self = mistake
  }

  /// Looks for an option that has one value but occurs twice, of which the parser uses the last.
  package init?(repetitionIn words: [String]) {
    let names = words.filter { $0.hasPrefix("--") }.map { $0.prefix { $0 != "=" } }
    // Looking up a verb's options takes milliseconds, so it is done only for repeated words.
    guard Set(names).count < names.count else { return nil }
    let place = Self.place(of: words)
    guard let mistake = Self.optionMistake(in: words.dropFirst(place.words.count), at: place.leaf),
      case .repetition = mistake
    else { return nil }
    self = mistake
  }

  /// Returns the position of the verb with which the arguments begin.
  package static func place(of words: [String]) -> Syntax.Place {
    var place = Syntax.Place()
    for word in withoutHelp(words) where !place.descend(to: word) { break }
    return place
  }

  /// Removes `help`, because `help VERB` is about the verb.
  private static func withoutHelp(_ words: [String]) -> ArraySlice<String> {
    words.first == "help" ? words.dropFirst() : words[...]
  }

  /// Returns the verb at this position that is nearest to a word, or a verb with the same name at another position.
  private static func verb(like word: String, at place: Syntax.Place) -> String? {
    let names = place.command.verbs.map { $0._commandName }
    if let near = Spelling.nearest(to: word, among: names, within: 1) {
      return (place.words + [near]).joined(separator: " ")
    }
    if let elsewhere = everyVerb(below: Syntax.Place()).first(where: { $0.words.last == word }) {
      return elsewhere.words.joined(separator: " ")
    }
    if let near = Spelling.nearest(to: word, among: names) { return (place.words + [near]).joined(separator: " ") }
    return Spelling.nearest(to: "--\(word)", among: ["--version", "--help"])
  }

  private static func everyVerb(below place: Syntax.Place) -> [Syntax.Place] {
    place.command.verbs.flatMap { verb in
      var next = place
      _ = next.descend(to: verb._commandName)
      return [next] + everyVerb(below: next)
    }
  }

  private static func optionMistake(in words: ArraySlice<String>, at place: Syntax.Place) -> TypingError? {
    let options = Syntax.options(of: place.command)
    guard !options.isEmpty else { return nil }
    var rest = words.prefix { $0 != "--" }
    var given: Set<String> = []
    while let word = rest.popFirst() {
      guard word.hasPrefix("-"), word.utf8.count > 2, !word.isNegativeNumber else { continue }
      let name = String(word.prefix { $0 != "=" })
      guard let option = options.first(where: { $0.name == name }) else {
        return .option(name, suggestion: Spelling.nearest(to: name, among: options.map(\.name)), at: place)
      }
      guard option.mayRepeat || given.insert(name).inserted else { return .repetition(name, at: place) }
      guard option.takesValue, !word.contains("="), let value = rest.first else { continue }
      if option.takesAnything || !value.hasPrefix("-") {
        rest.removeFirst()
      } else if value.isNegativeNumber {
        return .negativeNumber(value, option: name, at: place)
      }
    }
    return nil
  }

  package var failure: Failure {
    switch self {
    case .verb(let word, let suggestion, let place):
      Failure(
        .usage, "\(place.text) has no verb '\(word)'",
        hint: Self.hint(suggestion.map { "holdfast \($0)" }, at: place))
    case .option(let name, let suggestion, let place):
      Failure(.usage, "\(place.text) has no option '\(name)'", hint: Self.hint(suggestion, at: place))
    case .negativeNumber(let value, let option, let place):
      Failure(
        .usage, "'\(option)' has no value: '\(value)' was taken for an option",
        hint: "to use it as the value, write \(option)=\(value); see \(place.text) --help")
    case .repetition(let name, let place):
      Failure(.usage, "\(name) is given twice", hint: "\(place.text) accepts it once; see \(place.text) --help")
    }
  }

  private static func hint(_ suggestion: String?, at place: Syntax.Place) -> String {
    (suggestion.map { "did you mean \($0)? " } ?? "") + "see \(place.text) --help"
  }
}

extension String {
  /// The parser's message with a small first letter, as it follows `holdfast:`.
  fileprivate var withoutCapital: String {
    let second = dropFirst().first
    return second?.isLowercase == true ? prefix(1).lowercased() + dropFirst() : self
  }

  fileprivate var isNegativeNumber: Bool {
    utf8.count > 1 && utf8.first == UInt8(ascii: "-") && utf8.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
  }
}
