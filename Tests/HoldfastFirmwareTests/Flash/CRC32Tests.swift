import Testing

import HoldfastFirmware

@Suite struct CRC32Tests {
  /// The values that zlib computes for the bytes.
  @Test func `the checksum is CRC-32 as Ethernet has it, over little-endian words`() {
    var crc = CRC32()
    #expect(crc.value == 0)
    crc.append(word: 0x3433_3231)
    #expect(crc.value == 0x9be3_e0a3, "1234")
    crc.append(word: 0x3837_3635)
    #expect(crc.value == 0x9ae0_daaf, "12345678")
    var other = CRC32()
    other.append(word: 0x0403_0201)
    #expect(other.value == 0xb63c_fbcd)
    var all = CRC32()
    for first in stride(from: 0, to: 256, by: 4) as StrideTo<UInt32> {
      all.append(word: first | (first + 1) << 8 | (first + 2) << 16 | (first + 3) << 24)
    }
    #expect(all.value == 0x2905_8c73, "each byte once")
  }
}
