import Testing

import HoldfastFirmware

@Suite struct CRC32Tests {
  @Test func `the checksum is CRC-32 as Ethernet has it`() {
    var crc = CRC32()
    for byte in "123456789".utf8 { crc.append(byte) }
    #expect(crc.value == 0xcbf4_3926)
    #expect(CRC32().value == 0)
  }

  @Test func `a word counts as its four bytes, the least significant first`() {
    var (words, bytes) = (CRC32(), CRC32())
    words.append(word: 0x0403_0201)
    for byte: UInt8 in 1...4 { bytes.append(byte) }
    #expect(words.value == bytes.value)
  }
}
