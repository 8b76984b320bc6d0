import Testing

import HoldfastCore

/// Comparing in constant time.
@Suite struct ConstantTimeTests {
  private func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    constantTimeEqual(left.span, right.span)
  }

  @Test func `bytes are equal only when there are as many and each is`() {
    let bytes = [UInt8](0..<32)
    #expect(areEqual(bytes, bytes))
    #expect(areEqual([], []))
    for index in bytes.indices {
      var other = bytes
      other[index] ^= 0x80
      #expect(!areEqual(bytes, other))
    }
    #expect(!areEqual(Array(bytes.dropLast()), bytes))
    #expect(!areEqual(bytes, Array(bytes.dropLast())))
  }
}
