import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// Challenges that never repeat.
@Suite struct ChallengeSourceTests {
  private func challenge(
    seed: UInt8 = 1, boot: UInt64 = 2, connection: UInt64 = 3, entropy: UInt8 = 4
  ) throws -> Nonce {
    var cryptography = OpenSSLCryptography()
    var source = ChallengeSource(
      seed: secret([UInt8](repeating: seed, count: 32)), bootCount: boot, connection: connection)
    return try source.next(entropy: secret([UInt8](repeating: entropy, count: 32)), using: &cryptography)
  }

  @Test func `a challenge is the HMAC of label, boot, connection, round and entropy under the seed`() throws {
    var cryptography = OpenSSLCryptography()
    let seed = [UInt8](repeating: 1, count: 32)
    var mac = try cryptography.hmacSHA256(key: seed.span)
    mac.append(domain: "holdfast/1 challenge")
    for counter in [2, 3, 1] as [UInt64] { mac.append(bigEndian: counter) }
    let entropy = [UInt8](repeating: 4, count: 32)
    mac.append(entropy.span)
    let digest: MAC = try mac.finish()
    let made = try challenge()
    #expect(hex(made.bytes) == hex(digest.bytes.extracting(first: 16)))
  }

  @Test func `seed, boot, connection and entropy each change it`() throws {
    let all = [
      try challenge(), try challenge(seed: 9), try challenge(boot: 9), try challenge(connection: 9),
      try challenge(entropy: 9),
    ]
    #expect(Set(all).count == all.count)
  }
}
