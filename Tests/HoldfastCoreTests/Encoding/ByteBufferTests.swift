import Testing

import HoldfastCore

@Suite struct ByteBufferTests {
  @Test func `a buffer takes as many bytes as it has room for, and stays as it is when it is full`() throws {
    var buffer = ByteBuffer<4>()
    try buffer.appendZeros(2)
    try buffer.append(7)
    try buffer.append(8)
    for attempt in 0..<3 {
      let failed: Bool
      do {
        switch attempt {
        case 0: try buffer.append(9)
        case 1: try buffer.appendZeros(1)
        default: try buffer.append("x" as StaticString)
        }
        failed = false
      } catch { failed = true }
      #expect(failed)
    }
    let expected: [UInt8] = [0, 0, 7, 8]
    let isSame = buffer.bytes.elementsEqual(expected.span)
    #expect(isSame)
  }
}
