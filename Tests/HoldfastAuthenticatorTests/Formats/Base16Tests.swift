import HoldfastAuthenticator
import Testing

struct Base16Tests {
  @Test("every pair of digits is read, in either case")
  func everyPair() throws {
    let digits = Array("0123456789abcdef".utf8)
    let capitals = Array("0123456789ABCDEF".utf8)
    for byte in 0...255 {
      for (high, low) in [(digits, digits), (capitals, capitals), (digits, capitals)] {
        let secret = try Base16.decode([high[byte >> 4], low[byte & 15]].span)
        #expect(secret.count == 1)
        #expect(secret.bytes[0] == UInt8(byte))
      }
    }
  }

  @Test("every other character is refused")
  func everyOtherCharacter() {
    let digits = Set("0123456789abcdefABCDEF".utf8)
    for byte in UInt8.min...UInt8.max where !digits.contains(byte) {
      #expect(throws: Base16Fault.self) { _ = try Base16.decode([0x30, byte].span) }
      #expect(throws: Base16Fault.self) { _ = try Base16.decode([byte, 0x30].span) }
    }
  }

  @Test("half a byte is refused, and no text is no bytes")
  func lengths() throws {
    #expect(throws: Base16Fault.self) { _ = try Base16.decode([0x30].span) }
    #expect(throws: Base16Fault.self) { _ = try Base16.decode([0x30, 0x30, 0x30].span) }
    let text: [UInt8] = []
    let none = try Base16.decode(text.span)
    #expect(none.count == 0)
  }
}
