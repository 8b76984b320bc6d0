import Foundation
import TestSupport

/// `docs/protocol.md`, as far as a program can read it.
///
/// A block that opens with ```` ```hex LABEL ```` holds bytes, one with ```` ```text LABEL ```` UTF-8 text; in both, the
/// lines are joined with nothing between.
struct ProtocolDocument {
  /// The contents of a labelled block.
  struct Block {
    let label: String
    let bytes: [UInt8]
  }

  /// A row of the table of statuses.
  struct StatusRow {
    let code: UInt8
    let name: String
    let sealed: String
  }

  enum Fault: Error {
    case unknownFence(String)
    case unclosedFence
    case notHexadecimal(label: String)
  }

  private(set) var blocks: [Block] = []
  private(set) var statusRows: [StatusRow] = []
  /// The rows of the table of limits, without its head: three cells each.
  private(set) var limitRows: [[String]] = []

  init() throws {
    let file = URL(filePath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "docs/protocol.md")
    try self.init(parsing: String(contentsOf: file, encoding: .utf8))
  }

  init(parsing text: String) throws {
    var section = Substring()
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false)[...]
    while let line = lines.popFirst() {
      if line.hasPrefix("## ") { section = line.dropFirst(3) }
      if line.hasPrefix("```") {
        try read(fence: line.dropFirst(3), from: &lines)
      } else if section == "Statuses", let row = StatusRow(parsing: line) {
        statusRows.append(row)
      } else if section == "Limits", line.hasPrefix("|"), !line.hasPrefix("| ---"), !line.hasPrefix("| limit |") {
        limitRows.append(cells(of: line))
      }
    }
  }

  /// The bytes of the first block with this label.
  subscript(label: String) -> [UInt8]? {
    blocks.first { $0.label == label }?.bytes
  }

  private mutating func read(fence: Substring, from lines: inout ArraySlice<Substring>) throws {
    guard let end = lines.firstIndex(of: "```") else { throw Fault.unclosedFence }
    let content = lines[..<end].joined()
    lines = lines[(end + 1)...]
    let words = fence.split(separator: " ", omittingEmptySubsequences: false)
    switch (words.first, words.count) {
    case (nil, _), ("", 1), ("cddl", 1):
      return
    case ("hex", 2):
      let label = String(words[1])
      guard content.utf8.count % 2 == 0, content.utf8.allSatisfy(Self.isDigit) else {
        throw Fault.notHexadecimal(label: label)
      }
      blocks.append(Block(label: label, bytes: hex(content)))
    case ("text", 2):
      blocks.append(Block(label: String(words[1]), bytes: Array(content.utf8)))
    default:
      throw Fault.unknownFence(String(fence))
    }
  }

  private static func isDigit(_ character: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character)
      || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(character)
  }
}

extension ProtocolDocument.StatusRow {
  /// Reads `| code | name | sealed | when |`; nil for any other line.
  fileprivate init?(parsing line: Substring) {
    let cells = cells(of: line)
    guard cells.count == 4, let code = UInt8(cells[0]) else { return nil }
    (self.code, name, sealed) = (code, cells[1], cells[2])
  }
}

/// The cells of a row that begins and ends with a bar.
private func cells(of line: Substring) -> [String] {
  line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast().map {
    $0.trimmingCharacters(in: .whitespaces)
  }
}
