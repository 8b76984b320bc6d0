import Testing

import HoldfastCore

@Suite struct WipingTests {
  /// The bytes that a value leaves behind when it goes out of scope; `written` is the number of its bytes.
  private func remains<Value: ~Copyable>(_ written: Int, make: () -> Value) -> (before: [UInt8], after: [UInt8]) {
    let place = UnsafeMutablePointer<Value>.allocate(capacity: 1)
    defer { unsafe place.deallocate() }
    let bytes = unsafe UnsafeRawBufferPointer(start: place, count: written)
    unsafe place.initialize(to: make())
    let before = unsafe Array(bytes)
    unsafe place.deinitialize(count: 1)
    return unsafe (before, Array(bytes))
  }

  private let ones = [UInt8](repeating: 0xa5, count: 64)

  @Test func `a secret and a buffer are wiped where they were`() throws {
    let secret = remains(32) { Secret<32>(copying: ones.span.extracting(first: 32))! }
    #expect(secret.before == [UInt8](repeating: 0xa5, count: 32))
    #expect(secret.after == [UInt8](repeating: 0, count: 32))
    let buffer = remains(48) {
      var buffer = ByteBuffer<64>()
      try? buffer.append(ones.span.extracting(first: 48))
      return buffer
    }
    #expect(buffer.before == [UInt8](repeating: 0xa5, count: 48))
    #expect(buffer.after == [UInt8](repeating: 0, count: 48))
  }

  @Test func `what holds secrets wipes them where they were`() throws {
    let token = remains(MemoryLayout<MeasurementClaims>.size) {
      var claims = MeasurementClaims()
      try? claims.integrity.set(ones.span.extracting(first: 32))
      try? claims.proofKey.set(ones.span.extracting(first: 16))
      return claims
    }
    #expect(token.before.count { $0 == 0xa5 } >= 48)
    #expect(!token.after.contains(0xa5))
  }
}
