import HoldfastCore
import Testing

@Suite struct CrockfordBase32Tests {
  @Test func `each five bits have Crockford's character, and it them`() {
    let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    #expect((0..<32).map { CrockfordBase32.character($0) } == alphabet)
    var values: [UInt8: UInt8] = [UInt8(ascii: "O"): 0, UInt8(ascii: "I"): 1, UInt8(ascii: "L"): 1]
    for (value, character) in alphabet.enumerated() { values[character] = UInt8(value) }
    for (character, value) in values where character >= 0x41 { values[character + 0x20] = value }
    for byte in UInt8.min...255 { #expect(CrockfordBase32.value(byte) == values[byte] ?? 0x80) }
  }
}
