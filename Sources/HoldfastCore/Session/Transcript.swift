/// The transcript of a round, which both ends have seen, and from which they derive keys and a nonce.
///
/// Source: docs/protocol.md, Transcript, nonce and keys. The device's challenge makes its proof nonce fresh, and the
/// nonce is bound to this device, prover and token.
package struct Transcript {
  /// `th`: SHA-256 over M1 and the head of M2.
  package let hash: Digest

  /// Hashes M1 and the head of M2, as they are on the wire.
  public init<Crypto: Cryptography & ~Copyable>(
    challenge: Span<UInt8>, head: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    var digest = try cryptography.sha256()
    digest.append(domain: "holdfast/1 transcript")
    digest.append(bigEndian: UInt16(challenge.count))
    digest.append(challenge)
    digest.append(bigEndian: UInt16(head.count))
    digest.append(head)
    hash = try digest.finish()
  }

  /// The nonce of the proofs: the first 16 bytes of ``hash`` with the top bit set, which no compatibility round may
  /// use.
  package var proofNonce: Nonce {
    var nonce = Nonce()
    for index in 0..<16 { nonce[index] = hash[index] }
    nonce[0] |= 0x80
    return nonce
  }
}

/// The two keys of a session round. Each seals one message, so its nonce may be zero.
///
/// Source: RFC 5869; docs/protocol.md, Transcript, nonce and keys.
package struct SessionKeys: ~Copyable {
  /// The key that seals the request in M2.
  package let proverToDevice: Secret<32>
  /// The key that seals the reply in M3.
  package let deviceToProver: Secret<32>

  /// Derives the keys from the measurement proof key, from DM (`device`) and from the transcript.
  package init<Crypto: Cryptography & ~Copyable>(
    proofKey: borrowing Secret<16>, device: borrowing Secret<32>, transcript: Transcript,
    using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    var input = ByteBuffer<48>()
    var info = ByteBuffer<32>()
    do throws(EncodingFault) {
      try proofKey.withBytes { (bytes) throws(EncodingFault) in try input.append(bytes) }
      try device.withBytes { (bytes) throws(EncodingFault) in try input.append(bytes) }
      try info.append("holdfast/1 session keys")
    } catch { throw CryptographyFailure() }
    var output = Secret<64>()
    try output.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try cryptography.hkdfSHA256(inputKey: input.bytes, salt: transcript.hash.bytes, info: info.bytes, into: &bytes)
    }
    proverToDevice = output.part(at: 0)
    deviceToProver = output.part(at: 32)
  }
}

extension Secret {
  /// Copies `partCount` bytes from `offset` on.
  borrowing func part<let partCount: Int>(at offset: Int) -> Secret<partCount> {
    var part = Secret<partCount>()
    do throws(EncodingFault) {
      try withBytes { (bytes) throws(EncodingFault) in
        try part.set(bytes.extracting(offset..<offset + partCount))
      }
    } catch { preconditionFailure() }
    return part
  }
}
