import HoldfastCore
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

  @Test(arguments: [
    "```hex\n00\n```", "```hex one two\n00\n```", "```hex odd\n0\n```", "```hex upper\nAB\n```", "```sh\nls\n```",
    "```hex open\n00",
  ])
  func `a block that cannot be checked is refused`(text: String) {
    #expect(throws: ProtocolDocument.Fault.self) { try ProtocolDocument(parsing: text) }
  }
}
