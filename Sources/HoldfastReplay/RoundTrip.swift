import HoldfastCore

/// Functions that decode a message strictly and encode it again. The encoding is deterministic, so the bytes must be the same.
public enum RoundTrip {
  /// Decodes M1 and encodes it again.
  public static func challenge<Sink: ByteSink & ~Copyable>(
    _ message: Span<UInt8>, into sink: inout Sink
  ) throws(EncodingFault) where Sink.Failure == EncodingFault {
    try Challenge(message).encode(into: &sink)
  }

  /// Decodes M2 and encodes it again.
  public static func answer<Sink: ByteSink & ~Copyable>(
    _ message: Span<UInt8>, into sink: inout Sink
  ) throws(EncodingFault) where Sink.Failure == EncodingFault {
    let answer = try ProofMessage(message)
    switch answer.form {
    case .session(let head, let sealed):
      try ProofMessage.encode(
        head: head, integrityProof: answer.integrityProof, deviceProof: answer.deviceProof, sealed: sealed, into: &sink)
    case .compatibility:
      // The core cannot encode this form, so the test covers only the decoding.
      try sink.append(message)
    }
  }

  /// Decodes M3 and encodes it again.
  public static func verdict<Sink: ByteSink & ~Copyable>(
    _ message: Span<UInt8>, into sink: inout Sink
  ) throws(EncodingFault) where Sink.Failure == EncodingFault {
    let verdict = try VerdictMessage(message)
    if verdict.isSealed {
      try VerdictMessage.encode(verdict.status, sealed: verdict.sealed, into: &sink)
    } else {
      try VerdictMessage.encode(unsealed: verdict.status, into: &sink)
    }
  }

  /// Decodes the plaintext of M2's sealed part and encodes it again.
  public static func request<Sink: ByteSink & ~Copyable>(
    _ plaintext: Span<UInt8>, into sink: inout Sink
  ) throws(EncodingFault) where Sink.Failure == EncodingFault {
    try Request(plaintext).encode(into: &sink)
  }
}
