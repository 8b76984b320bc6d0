import TestSupport
import Testing

import HoldfastCore

/// The heads of items, as readers demand them: in the fewest bytes. Source: RFC 8949 §4.2.1 and Appendix A.
@Suite struct CBORWriterTests {
  @Test(arguments: [
    (0, "00"), (23, "17"), (24, "1818"), (255, "18ff"), (256, "190100"), (65_535, "19ffff"), (65_536, "1a00010000"),
    (4_294_967_295, "1affffffff"), (4_294_967_296, "1b0000000100000000"), (UInt64.max, "1bffffffffffffffff"),
  ])
  func `a number takes the fewest bytes that hold it, and is read again`(number: UInt64, text: String) throws {
    var bytes: [UInt8] = []
    bytes.appendCBOR(unsigned: number)
    #expect(hex(bytes) == text)
    guard number <= maximumInteger else { return }
    var reader = CBORReader(bytes.span)
    #expect(try reader.unsigned() == number)
    try reader.finish()
  }

  @Test(arguments: [0, 23, 24, 255, 256, 300]) func `a buffer puts a head before bytes that it has already`(
    count: Int
  ) throws {
    var buffer = ByteBuffer<400>()
    try buffer.append(1)
    for index in 0..<count { try buffer.append(UInt8(truncatingIfNeeded: index)) }
    try buffer.wrapCBOR(from: 1)
    var reader = CBORReader(buffer.bytes.extracting(droppingFirst: 1))
    let expected = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    let isSame = try reader.byteString().elementsEqual(expected.span)
    #expect(isSame)
    try reader.finish()
  }
}
