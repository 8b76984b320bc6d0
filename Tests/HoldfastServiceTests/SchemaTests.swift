import HoldfastFormats
import HoldfastService
import Testing

@Suite struct SchemaTests {
  private func accepts(_ schema: Schema, _ value: JSONValue) -> Bool {
    do throws(JSONMistake) { try schema.check(JSONMember(value)) } catch { return false }
    return true
  }

  @Test func `hexadecimal digits are lower-case, and as many as the schema says`() {
    let schema = Schema.hexadecimal(digitCount: 4)
    #expect(accepts(schema, .string("09af")))
    for text in ["", "09a", "09af0", "09ag", "09AF", "0 af", "0x9a"] { #expect(!accepts(schema, .string(text))) }
    #expect(!accepts(schema, .integer(1234)))
  }

  @Test func `bytes are pairs of hexadecimal digits, and as many as the schema permits`() {
    let schema = Schema.bytes(1...2)
    for text in ["0a", "0a1b"] { #expect(accepts(schema, .string(text))) }
    for text in ["", "0", "0a1", "0a1b2c", "zz", "0A"] { #expect(!accepts(schema, .string(text))) }
  }

  @Test func `what may be null is null, or else has the form that the schema names`() {
    let schema = Schema.nullable(.hexadecimal(digitCount: 2))
    #expect(accepts(schema, .null) && accepts(schema, .string("0a")))
    for value in [.string("0"), .string(""), .integer(0), .bool(false)] as [JSONValue] {
      #expect(!accepts(schema, value))
    }
  }
}
