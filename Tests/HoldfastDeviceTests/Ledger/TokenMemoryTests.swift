import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastDevice

@Suite struct TokenMemoryTests {
  private func reference(_ number: UInt8) -> TokenReference { TokenReference(filledWith: number) }

  /// The tokens that a memory with room for `capacity` still has, after they came in this order.
  private func kept(of numbers: [UInt8], capacity: Int) throws -> [UInt8] {
    let device = try TestDevice()
    let prover = try device.prover()
    #expect(try device.connect().round(prover).status == .accepted)
    var cryptography = OpenSSLCryptography()
    let token = prover.token
    let own = try tokenReference(token.span, using: &cryptography)
    let memory = TokenMemory(capacity: capacity)
    for number in numbers {
      var token = AuthenticatedToken()
      guard device.memory.recall(own, into: &token) else { throw DeviceFault.store }
      memory.remember(token, as: reference(number))
    }
    let kept = (UInt8(1)...9).filter { number in
      var token = AuthenticatedToken()
      return memory.recall(reference(number), into: &token)
    }
    #expect(memory.count == kept.count)
    return kept
  }

  @Test func `the oldest token goes first, and one that comes again keeps its place`() throws {
    #expect(try kept(of: [1, 2, 3, 1, 4, 5], capacity: 3) == [3, 4, 5])
    #expect(try kept(of: [1, 2, 3, 1, 4, 5, 6, 7, 8, 9], capacity: 3) == [7, 8, 9])
  }

  @Test func `a memory has room for one token at least`() throws {
    #expect(try kept(of: [1, 2], capacity: 0) == [2])
  }
}
