/// CRC-32 as Ethernet has it (reflected, polynomial 0x04C11DB7): finds what power cuts and worn cells do, not what people do.
///
/// Source: IEEE 802.3 §3.2.9.
struct CRC32 {
  private var register: UInt32 = .max

  /// What the register holds for each value of four bits.
  private static let steps: InlineArray<16, UInt32> = [
    0x0000_0000, 0x1db7_1064, 0x3b6e_20c8, 0x26d9_30ac, 0x76dc_4190, 0x6b6b_51f4, 0x4db2_6158, 0x5005_713c,
    0xedb8_8320, 0xf00f_9344, 0xd6d6_a3e8, 0xcb61_b38c, 0x9b64_c2b0, 0x86d3_d2d4, 0xa00a_e278, 0xbdbd_f21c,
  ]

  mutating func append(_ byte: UInt8) {
    register ^= UInt32(byte)
    register = register >> 4 ^ Self.steps[Int(register & 15)]
    register = register >> 4 ^ Self.steps[Int(register & 15)]
  }

  mutating func append(word: UInt32) {
    for index: UInt32 in 0..<4 { append(UInt8(truncatingIfNeeded: word >> (8 * index))) }
  }

  var value: UInt32 { ~register }
}
