import ArgumentParser
import HoldfastJSON
import Testing

@testable import holdfast

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
    return text.split(separator: "\n").map { line in
      // A shell would take the rest away.
      line.split(separator: " ").prefix { $0 != ">" && $0 != "|" }.map(String.init)
    }
  }

  /// What ArgumentParser says of the arguments.
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
      #expect(isShown || words.dropFirst().first == "help", "\(words) is not an example of this verb")
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
      let isPath = ["a file ", "the file", "a folder", "the folder", "'s folder"].contains(
        where: text.lowercased().contains)
      guard isPath else { continue }
      #expect(argument["completionKind"] != nil, "\(argument["valueName"]?.text ?? ""): \(text)")
    }
  }

  @Test("the page of each verb can be asked for by help")
  func help() {
    for page in Page.all {
      #expect(throws: (any Error).self) { try Holdfast.parseAsRoot(page.words + ["--help"]) }
      #expect(TypingError(in: ["help"] + page.words) == nil, "\(page.testDescription)")
    }
  }
}
