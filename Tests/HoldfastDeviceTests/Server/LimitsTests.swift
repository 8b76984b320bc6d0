import HoldfastCore
import HoldfastDevice
import HoldfastOpenSSL
import Testing

@Suite struct LimitsTests {
  @Test func `a server's limits are those of the protocol unless told otherwise`() {
    let options = ServerOptions()
    #expect((options.connectionCount, options.waitingCount) == (64, 128))
    #expect(TokenMemory.usualCapacity == 4096)
    #expect((LedgerLimits().keptCount, LedgerLimits().issuerCount) == (1_000_000, 64))
    #expect((options.timing.answerMilliseconds, options.timing.messageMilliseconds) == (30_000, 10_000))
    #expect((options.timing.sendMilliseconds, options.timing.greatestDelayMilliseconds) == (10_000, 1000))
    #expect(DevicePolicy.maximumCommandCount == 256)
    #expect(DevicePolicy().maximumIssueAdvanceSeconds == 400 * 86_400)
  }

  @Test func `4096 tokens are remembered, and no more`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    #expect(try device.connect().round(prover).status == .accepted)
    var cryptography = OpenSSLCryptography()
    let token = prover.token
    var last = try tokenReference(token.span, using: &cryptography)
    for number in 0..<5000 {
      var token = AuthenticatedToken()
      guard device.memory.recall(last, into: &token) else {
        Issue.record("nothing is remembered at \(number)")
        return
      }
      last = Self.reference(number)
      device.memory.remember(token, as: last)
    }
    var recalled = AuthenticatedToken()
    let (isForgotten, isKept) = (
      !device.memory.recall(Self.reference(903), into: &recalled),
      device.memory.recall(Self.reference(904), into: &recalled)
    )
    #expect((device.memory.count, isForgotten, isKept) == (4096, true, true))
  }

  private static func reference(_ number: Int) -> TokenReference {
    var reference = TokenReference()
    (reference[0], reference[1]) = (UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8))
    reference[15] = 1
    return reference
  }
}
