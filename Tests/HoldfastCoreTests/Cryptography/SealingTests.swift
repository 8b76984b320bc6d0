import HoldfastOpenSSL
import Testing

import HoldfastCore

/// Sealing in place.
@Suite struct SealingTests {
  @Test func `a buffer that does not open is left empty`() throws {
    var cryptography = OpenSSLCryptography()
    let key = Secret<32>()
    let nonce = FixedBytes<12>()
    var buffer = ByteBuffer<64>()
    try buffer.append("a secret" as StaticString)
    try buffer.seal(key: key, nonce: nonce.bytes, authenticating: Span(), using: &cryptography)
    #expect(buffer.count == 24)
    var changed = buffer.mutableBytes
    changed[20] ^= 1
    let failed: Bool
    do {
      try buffer.open(key: key, nonce: nonce.bytes, authenticating: Span(), using: &cryptography)
      failed = false
    } catch { failed = true }
    #expect(failed)
    #expect(buffer.count == 0)
  }

  @Test func `a message without bytes is only its tag, and opens`() throws {
    var cryptography = OpenSSLCryptography()
    var buffer = ByteBuffer<64>()
    let nonce = FixedBytes<12>()
    let key = Secret<32>()
    try buffer.seal(key: key, nonce: nonce.bytes, authenticating: Span(), using: &cryptography)
    #expect(buffer.count == 16)
    try buffer.open(key: key, nonce: nonce.bytes, authenticating: Span(), using: &cryptography)
    #expect(buffer.count == 0)
  }

  @Test func `what is too short for a tag does not open`() throws {
    var cryptography = OpenSSLCryptography()
    var buffer = ByteBuffer<64>()
    try buffer.appendZeros(15)
    let nonce = FixedBytes<12>()
    let key = Secret<32>()
    let failed: Bool
    do {
      try buffer.open(key: key, nonce: nonce.bytes, authenticating: Span(), using: &cryptography)
      failed = false
    } catch { failed = true }
    #expect(failed)
  }
}
