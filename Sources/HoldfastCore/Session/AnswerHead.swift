/// What the transcript covers of M2: `[prover_random, encoding, token]`.
package enum AnswerHead {
  /// Writes it. `random` is fresh for each M2.
  package static func encode<Sink: ByteSink & ~Copyable>(
    random: FixedBytes<16>, encoding: TokenEncoding, token: Span<UInt8>, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.appendCBOR(array: 3)
    try sink.appendCBOR(bytes: random.bytes)
    try sink.appendCBOR(unsigned: UInt64(encoding.rawValue))
    try sink.appendCBOR(bytes: token)
  }
}
