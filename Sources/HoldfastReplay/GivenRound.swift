import HoldfastCore

/// What a device derives in a round whose M1, head and secrets are given.
public struct GivenRound: ~Copyable {
  private let transcript: Transcript
  private let keys: SessionKeys

  public init<Crypto: Cryptography & ~Copyable>(
    challenge: Span<UInt8>, head: Span<UInt8>, proofKey: borrowing MeasurementProofKey, device: borrowing Secret<32>,
    using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    let transcript = try Transcript(challenge: challenge, head: head, using: &cryptography)
    self.init(
      transcript,
      try SessionKeys(proofKey: proofKey, device: device, transcript: transcript, using: &cryptography))
  }

  private init(_ transcript: Transcript, _ keys: consuming SessionKeys) {
    self.transcript = transcript
    self.keys = keys
  }

  /// The transcript hash, the proof nonce, and both keys: 112 bytes.
  public func appendValues<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.append(transcript.hash.bytes)
    try sink.append(transcript.proofNonce.bytes)
    try keys.proverToDevice.withBytes { (bytes) throws(Sink.Failure) in try sink.append(bytes) }
    try keys.deviceToProver.withBytes { (bytes) throws(Sink.Failure) in try sink.append(bytes) }
  }

  /// Opens the sealed part of M2, and writes the request that was read.
  public func appendRequest<Crypto: Cryptography & ~Copyable>(
    in message: Span<UInt8>, to buffer: inout MessageBuffer, using cryptography: inout Crypto
  ) throws(GivenRoundFault) {
    var plaintext = MessageBuffer()
    do throws(EncodingFault) {
      guard case .session(_, let sealed) = try Answer(message).form else { throw .unexpected }
      try plaintext.append(sealed)
    } catch { throw .encoding }
    do throws(CryptographyFailure) {
      try plaintext.open(
        key: keys.proverToDevice, nonce: FixedBytes<12>().bytes, authenticating: transcript.hash.bytes,
        using: &cryptography)
    } catch { throw .cryptography }
    do throws(EncodingFault) { try WrittenAgain.request(plaintext.bytes, into: &buffer) } catch { throw .encoding }
  }

  /// Reads `reply`, the plaintext of M3's sealed part, and writes the M3 that has it.
  public func appendVerdict<Crypto: Cryptography & ~Copyable>(
    _ status: Status, _ reply: Span<UInt8>, to buffer: inout MessageBuffer, using cryptography: inout Crypto
  ) throws(GivenRoundFault) {
    var sealed = ByteBuffer<1152>()
    var authenticated = ByteBuffer<33>()
    do throws(EncodingFault) {
      try Reply(reply).encode(into: &sealed)
      try authenticated.append(transcript.hash.bytes)
      try authenticated.append(status.rawValue)
    } catch { throw .encoding }
    do throws(CryptographyFailure) {
      try sealed.seal(
        key: keys.deviceToProver, nonce: FixedBytes<12>().bytes, authenticating: authenticated.bytes,
        using: &cryptography)
    } catch { throw .cryptography }
    do throws(EncodingFault) { try VerdictMessage.encode(status, sealed: sealed.bytes, into: &buffer) } catch {
      throw .encoding
    }
  }
}

/// Why a part of a round could not be made.
public enum GivenRoundFault: Error {
  case encoding, cryptography
}

extension ByteBuffer {
  /// Takes claims at the end, as a CWT claims set.
  public mutating func append(claims: borrowing MeasurementClaims) throws(EncodingFault) {
    try claims.appendCBOR(to: &self)
  }
}
