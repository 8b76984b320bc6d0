import HoldfastCore

/// Strict reading of a message, and writing what was read: deterministic encoding leaves one way, the same bytes.
public enum WrittenAgain {
  /// M1.
  public static func challenge<Sink: ByteSink & ~Copyable>(
    _ message: Span<UInt8>, into sink: inout Sink
  ) throws(EncodingFault) where Sink.Failure == EncodingFault {
    try Challenge(message).encode(into: &sink)
  }

  /// M2.
  public static func answer<Sink: ByteSink & ~Copyable>(
    _ message: Span<UInt8>, into sink: inout Sink
  ) throws(EncodingFault) where Sink.Failure == EncodingFault {
    let answer = try Answer(message)
    switch answer.form {
    case .session(let head, let sealed):
      try Answer.encode(
        head: head, integrityProof: answer.integrityProof, deviceProof: answer.deviceProof, sealed: sealed, into: &sink)
    case .compatibility:
      // The core has no writer of these: reading is all that there is to compare.
      try sink.append(message)
    }
  }

  /// M3.
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

  /// The plaintext of M2's sealed part.
  public static func request<Sink: ByteSink & ~Copyable>(
    _ plaintext: Span<UInt8>, into sink: inout Sink
  ) throws(EncodingFault) where Sink.Failure == EncodingFault {
    try Request(plaintext).encode(into: &sink)
  }
}
