import HoldfastCore
import HoldfastOpenSSL
import Testing

@Suite struct TranscriptTests {
  @Test func `the proof nonce is the beginning of the transcript, with the top bit that no compatibility round has`()
    throws
  {
    var cryptography = OpenSSLCryptography()
    var firstBytes: Set<Bool> = []
    for number: UInt8 in 0..<32 {
      let head = [number]
      let transcript = try Transcript(challenge: head.span, head: head.span, using: &cryptography)
      let (hash, nonce) = (transcript.hash, transcript.proofNonce)
      firstBytes.insert(hash[0] < 0x80)
      #expect(nonce[0] == hash[0] | 0x80)
      #expect((1..<16).allSatisfy { nonce[$0] == hash[$0] })
    }
    #expect(firstBytes == [true, false])
  }
}
