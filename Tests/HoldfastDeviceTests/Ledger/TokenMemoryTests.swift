import HoldfastCore
import HoldfastOpenSSL
import Testing

@testable import HoldfastDevice

@Suite struct TokenMemoryTests {
  private func reference(_ number: UInt8) -> TokenReference { TokenReference(filledWith: number) }

  @Test func `the oldest token goes first, and one that comes again keeps its place`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    #expect(try device.connect().round(prover).status == .accepted)
    var cryptography = OpenSSLCryptography()
    let token = prover.token
    let own = try tokenReference(token.span, using: &cryptography)
    let memory = TokenMemory(capacity: 3)
    func remember(_ number: UInt8) throws {
      guard let token = device.memory.recall(own) else { throw StoreFailure() }
      memory.remember(token, as: reference(number))
    }
    func remembered() -> [UInt8] { (1...9).filter { memory.recall(reference($0)) != nil } }
    for number: UInt8 in [1, 2, 3, 1, 4, 5] { try remember(number) }
    #expect(remembered() == [3, 4, 5])
    for number: UInt8 in [6, 7, 8, 9] { try remember(number) }
    #expect(remembered() == [7, 8, 9])
    #expect(memory.count == 3)
  }

  @Test func `a memory has room for one token at least`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    #expect(try device.connect().round(prover).status == .accepted)
    var cryptography = OpenSSLCryptography()
    let token = prover.token
    let own = try tokenReference(token.span, using: &cryptography)
    let memory = TokenMemory(capacity: 0)
    for number: UInt8 in [1, 2] {
      guard let token = device.memory.recall(own) else { throw StoreFailure() }
      memory.remember(token, as: reference(number))
    }
    let found = [1, 2].map { memory.recall(reference($0)) != nil }
    #expect(found == [false, true])
  }
}
