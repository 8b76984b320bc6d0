import ArgumentParser

extension CommandConfiguration {
  /// A verb's configuration whose help page shows how it is used.
  ///
  /// A test parses each example, so that none names an option that is gone.
  /// - Parameter examples: Command lines for a shell, with `\` at the end of a line that goes on; lines of at most 76 bytes.
  init(
    commandName: String? = nil, abstract: String, usage: String? = nil, discussion: String = "", examples: [String],
    version: String = "",
    subcommands: [any ParsableCommand.Type] = [], defaultSubcommand: (any ParsableCommand.Type)? = nil
  ) {
    let lines = examples.map { "  \($0.split(separator: "\n").joined(separator: "\n      "))" }
    let shown = "EXAMPLES:\n\(lines.joined(separator: "\n"))"
    self.init(
      commandName: commandName, abstract: abstract, usage: usage,
      discussion: discussion.isEmpty ? shown : "\(discussion)\n\n\(shown)",
      version: version, subcommands: subcommands, defaultSubcommand: defaultSubcommand)
  }
}
