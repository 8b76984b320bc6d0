import HoldfastCore
import HoldfastFormats
import TestSupport
import Testing

@Suite struct DeviceSecretsTests {
  @Test func `challenges are keyed with what follows from the private key`() throws {
    func nonce(seed: UInt64) throws -> String {
      let message = try TestDevice(seed: seed).connect().challenge()
      return hexadecimal(try Challenge(message.span).nonce)
    }
    // python3, with scalar the first 32 bytes of TestRandom(state: 1) and hmac that of SHA-256:
    // seed = hmac(hmac(bytes(32), scalar), b"holdfast/1 challenge seed" + bytes([1]))
    // hmac(seed, b"holdfast/1 challenge" + bytes(1) + 3 * (1).to_bytes(8, "big") + bytes([1]) * 32)[:16]
    #expect(try nonce(seed: 1) == "21f5b9de45f19b97865a62b60b97b557")
    #expect(try nonce(seed: 2) != nonce(seed: 1))
  }
}
