import ArgumentParser
import HoldfastFormats
import Testing

import holdfast

/// A verb of the command line and its help page.
struct Page: CustomTestStringConvertible, Sendable {
  let words: [String]
  let command: any ParsableCommand.Type

  var testDescription: String { (["holdfast"] + words).joined(separator: " ") }

  /// The words of each example of the page.
  var examples: [[String]] {
    let lines = command.configuration.discussion.split(separator: "\n", omittingEmptySubsequences: false)
    guard let start = lines.firstIndex(of: "EXAMPLES:") else { return [] }
    let text = lines[(start + 1)...].joined(separator: "\n").replacing("\\\n", with: " ")
    // A shell would take the rest away.
    return text.split(separator: "\n").map { line in Array(shellWords(line).prefix { $0 != ">" && $0 != "|" }) }
  }

  /// The words of a line, with spaces between single quotation marks kept.
  private func shellWords(_ line: Substring) -> [String] {
    var words: [String] = []
    for (index, part) in line.split(separator: "'", omittingEmptySubsequences: false).enumerated() {
      if index % 2 == 1 { words.append(String(part)) } else { words += part.split(separator: " ").map(String.init) }
    }
    return words
  }

  /// The arguments, as ArgumentParser describes them.
  var arguments: [JSONValue] {
    get throws {
      let help = try JSONValue(parsing: Array(command._dumpHelp().utf8), byteLimit: 1 << 20, otherNumbers: .asText)
      return try #require(help["command"]?["arguments"]?.elements)
    }
  }

  static let all = below([], Holdfast.self)

  private static func below(_ words: [String], _ command: any ParsableCommand.Type) -> [Page] {
    [Page(words: words, command: command)]
      + command.configuration.subcommands.flatMap { below(words + [$0._commandName], $0) }
  }
}

@Suite("Help pages")
struct HelpPageTests {
  @Test("every page has examples, and the parser takes each of them for that verb", arguments: Page.all)
  func examples(page: Page) throws {
    #expect(!page.examples.isEmpty)
    for words in page.examples {
      #expect(words.first == "holdfast")
      let parsed = try Holdfast.parseAsRoot(Array(words.dropFirst()))
      let isShown = Page.all.contains { other in
        other.words.starts(with: page.words) && ObjectIdentifier(other.command) == ObjectIdentifier(type(of: parsed))
      }
      // The root's page shows how to get help, and a page of help on a subject the verbs that it is about.
      let isElsewhere = words.dropFirst().first == "help" || page.command == Endpoints.self
      #expect(isShown || isElsewhere, "\(words) is not an example of this verb")
    }
  }

  @Test("lines of examples fit a terminal", arguments: Page.all)
  func width(page: Page) {
    let lines = page.command.configuration.discussion.split(separator: "\n").drop { $0 != "EXAMPLES:" }
    for line in lines { #expect(line.utf8.count <= 79, "\(line)") }
  }

  @Test("a default that a page shows is a value that the option takes", arguments: Page.all)
  func defaults(page: Page) throws {
    for argument in try page.arguments {
      guard let value = argument["defaultValue"]?.text, let values = argument["allValues"]?.elements else { continue }
      #expect(values.contains { $0.text == value }, "--\(argument["valueName"]?.text ?? "")")
    }
  }

  @Test("options for files and folders complete them", arguments: Page.all)
  func completions(page: Page) throws {
    for argument in try page.arguments where argument["kind"]?.text != "flag" {
      let text = argument["abstract"]?.text ?? ""
      let isPath =
        text.contains("folder") || text.contains(": a file") || ["A file", "The file"].contains(where: text.hasPrefix)
      guard isPath else { continue }
      #expect(argument["completionKind"] != nil, "\(argument["valueName"]?.text ?? ""): \(text)")
    }
  }

  @Test("the page of each verb is asked for by help and the verb", arguments: Page.all)
  func help(page: Page) throws {
    #expect(TypingError(in: ["help"] + page.words) == nil)
    #expect(TypingError(in: page.words + ["--help"]) == nil)
    // The words are on the page's line of usage, unless it has its own.
    let text = Holdfast.helpMessage(for: page.command)
    #expect(text.contains("EXAMPLES:\n"))
    #expect(text.contains("USAGE: \(page.testDescription)"))
  }
}
