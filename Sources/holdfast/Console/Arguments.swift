import ArgumentParser
import HoldfastFormats

/// The arguments of this process.
package struct Arguments {
  /// The arguments without the program's name. `--json` comes directly after the verb, even if it was given before it.
  package let words: [String]

  /// Reads the arguments. One that is not UTF-8 is refused, because it would be taken for another name.
  package static func ofProcess() throws(Failure) -> Arguments {
    var words: [String] = []
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let argument = unsafe CommandLine.unsafeArgv[index] else { break }
      guard let word = unsafe String(validatingCString: argument) else {
        throw Failure(
          .usage, "argument \(index) is not UTF-8", hint: "names of files and users must be in UTF-8")
      }
      words.append(word)
    }
    return Arguments(words)
  }

  package init(_ words: [String]) {
    var (verbs, rest) = (Syntax.Place(), words[...])
    var isJSON = false
    while let word = rest.first {
      if word == "--json" { isJSON = true } else if !verbs.descend(to: word) { break }
      rest = rest.dropFirst()
    }
    self.words = verbs.words + (isJSON && !verbs.words.isEmpty ? ["--json"] : []) + rest
    isMarkedJSON = isJSON || rest.prefix { $0 != "--" }.contains("--json")
  }

  /// Whether results and errors are printed as JSON. This also applies to errors in the other arguments.
  package let isMarkedJSON: Bool
}

/// The verbs (subcommands) of the command line, with their options.
package enum Syntax {
  /// The position of a verb in the command line, from the outermost to the innermost.
  package struct Place {
    private(set) var commands: [any ParsableCommand.Type] = [Holdfast.self]
    private(set) var words: [String] = []

    var command: any ParsableCommand.Type { commands[commands.count - 1] }

    /// The command as a person types it.
    var text: String { (["holdfast"] + words).joined(separator: " ") }

    /// The position of the default verb if no other follows.
    var leaf: Place {
      var leaf = self
      if let usual = command.configuration.defaultSubcommand { _ = leaf.descend(to: usual._commandName) }
      return leaf
    }

    /// Descends to the verb with a name. Returns whether there is one.
    mutating func descend(to word: String) -> Bool {
      guard let next = command.verbs.first(where: { $0._commandName == word }) else { return false }
      commands.append(next)
      words.append(word)
      return true
    }
  }

  /// An option of a verb.
  package struct Option {
    let name: String
    let takesValue: Bool
    /// Whether the next argument is the option's value, even if it begins with a hyphen.
    let takesAnything: Bool
    /// Whether the option may occur more than once.
    let mayRepeat: Bool
  }

  /// Returns the long options of a verb, as ArgumentParser describes them.
  package static func options(of command: any ParsableCommand.Type) -> [Option] {
    guard let help = try? JSONValue(parsing: Array(command._dumpHelp().utf8), byteLimit: 1 << 20, otherNumbers: .asText)
    else { return [] }
    let arguments = help["command"]?["arguments"]?.elements ?? []
    return arguments.flatMap { argument in
      (argument["names"]?.elements ?? []).filter { $0["kind"]?.text == "long" }.map { name in
        Option(
          name: "--" + (name["name"]?.text ?? ""), takesValue: argument["kind"]?.text == "option",
          takesAnything: argument["parsingStrategy"]?.text == "unconditional",
          mayRepeat: argument["kind"]?.text != "option" || argument["isRepeating"] == .bool(true))
      }
    }
  }
}

extension ParsableCommand {
  /// The verbs below this one.
  static var verbs: [any ParsableCommand.Type] { configuration.subcommands }
}
