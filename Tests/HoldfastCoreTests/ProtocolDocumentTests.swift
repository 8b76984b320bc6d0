import HoldfastCore
import TestSupport
import Testing

/// `docs/protocol.md` says what the code does.
@Suite struct ProtocolDocumentTests {
  @Test func `every labelled block holds what the core computes`() throws {
    let document = try ProtocolDocument()
    for (label, value) in try ComputedExample().values.sorted(by: { $0.key < $1.key }) {
      let written = document[label]
      #expect(written == value, "\(label) should be \(hex(value.span))")
    }
  }

  @Test func `no labelled block is left unchecked, is missing, or is there twice`() throws {
    let written = try ProtocolDocument().blocks.map(\.label)
    let computed = try ComputedExample().values.keys
    #expect(written.sorted() == computed.sorted())
  }

  @Test func `the table of statuses has every status once, and says which are always sealed`() throws {
    let rows = try ProtocolDocument().statusRows
    #expect(rows.map(\.code).sorted() == Status.allCases.map(\.rawValue).sorted())
    for row in rows {
      let status = try #require(Status(rawValue: row.code))
      #expect(row.name == "\(status)")
      #expect((row.sealed == "always") == status.needsAuthentication, "\(status)")
    }
  }

  @Test func `the table of limits has the limits of the code, and no others`() throws {
    let limits = Limit.all
    let rows = limits.indices.map { limits[$0].cells }
    #expect(try ProtocolDocument().limitRows == rows)
  }

  @Test func `the buffers that follow from a limit have room for it`() {
    // One byte of an array's head, of the type and of the status, and three of the head of a byte string.
    #expect(VerdictBuffer.capacity >= SealedReplyBuffer.capacity + 6)
    #expect(TokenPartBuffer.capacity == TokenBuffer.capacity * 3 / 4)
  }

  @Test(arguments: [
    "```hex\n00\n```", "```hex one two\n00\n```", "```hex odd\n0\n```", "```hex upper\nAB\n```", "```sh\nls\n```",
    "```hex open\n00",
  ])
  func `a block that cannot be checked is refused`(text: String) {
    #expect(throws: ProtocolDocument.Fault.self) { try ProtocolDocument(parsing: text) }
  }
}

extension Limit {
  /// The row of this limit, as the document writes it.
  fileprivate var cells: [String] {
    ["\(name)", text(linux), microcontroller == linux ? "the same" : text(microcontroller)]
  }

  private func text(_ number: Int) -> String {
    switch unit {
    case .bytes: "\(number) bytes"
    case .milliseconds: number % 1000 == 0 ? "\(number / 1000) s" : "\(number) ms"
    case .count: number < 10_000 ? "\(number)" : Self.grouped(number)
    }
  }

  /// Digits in groups of three, with commas between them.
  private static func grouped(_ number: Int) -> String {
    number < 1000 ? "\(number)" : "\(grouped(number / 1000)),\(String(number % 1000 + 1000).dropFirst())"
  }
}
