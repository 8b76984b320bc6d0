import TestSupport
import Testing

import HoldfastCore

/// Bytes that are lent from inline storage; run in a release build, where the optimiser once lent dead copies of them.
@Suite struct InlineBytesTests {
  @Test func `fixed bytes are equal only when each byte is`() {
    let one = made(of: 1)
    let two = made(of: 2)
    #expect(one != two)
    #expect([one, two].firstIndex(of: two) == 1)
    #expect([one, two].firstIndex { $0 == two } == 1)
    for index in 0..<32 {
      var other = one
      other[index] ^= 0x80
      #expect(other != one)
    }
  }

  @Test func `texts of one length are equal only when each byte is`() throws {
    let names = try ["app.debug", "app.image", "app.imagf"].map { try #require(BoundedText<32>($0)) }
    for (index, name) in names.enumerated() {
      #expect(names.firstIndex(of: name) == index)
      #expect(names.firstIndex { $0 == name } == index)
    }
    #expect(BoundedText<32>("app.debug") == names[0])
    #expect(BoundedText<32>("app.image") != names[0])
  }

  @Test func `bytes of a temporary value are its own`() {
    let sums = (UInt8(1)...3).map { sum(made(of: $0).bytes) }
    #expect(sums == [32, 64, 96])
    let areEqual = made(of: 1).bytes.elementsEqual(made(of: 2).bytes)
    #expect(!areEqual)
  }

  @Test func `a buffer lends the bytes that it holds`() throws {
    var first = ByteBuffer<64>()
    var second = ByteBuffer<64>()
    try first.append(made(of: 1).bytes)
    try second.append(made(of: 2).bytes)
    let sums = [sum(first.bytes), sum(second.bytes)]
    #expect(sums == [32, 64])
    let areEqual = first.bytes.elementsEqual(second.bytes)
    #expect(!areEqual)
  }

  private func made(of byte: UInt8) -> Digest {
    fixed([UInt8](repeating: byte, count: 32))
  }

  private func sum(_ bytes: Span<UInt8>) -> Int {
    bytes.indices.reduce(0) { $0 + Int(bytes[$1]) }
  }
}
