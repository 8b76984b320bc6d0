/// M2, from prover to device: `[2, head, imp / null, dmp / null, sealed]`, or the M2 of a compatibility round. The
/// spans point into the message.
package struct ProofMessage: ~Escapable {
  /// The parts that only one of the two forms has.
  package enum Form: ~Escapable {
    /// A session round. The transcript covers `head`; `sealed` is the encrypted request and its tag.
    case session(head: Span<UInt8>, sealed: Span<UInt8>)
    /// A compatibility round. The app chose the nonce, and the command is in the clear.
    case compatibility(nonce: Nonce, command: BoundedText<32>)
  }

  /// The form of the message, with the parts that only this form has.
  package let form: Form
  /// The encoding of ``token``.
  package let encoding: TokenEncoding
  /// The token, at most 3072 bytes, or a reference of 16 bytes.
  package let token: Span<UInt8>
  /// The integrity proof (IMP), 32 bytes; nil if none was given.
  package let integrityProof: MAC?
  /// The device proof (DMP), 32 bytes; nil if none was given.
  package let deviceProof: MAC?

  /// Decodes M2.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for another structure, `tooLong` above 4096
  ///   bytes.
  @_lifetime(copy message)
  package init(_ message: Span<UInt8>) throws(EncodingFault) {
    guard message.count <= Message.maximumByteCount else { throw .tooLong }
    var reader = CBORReader(message)
    let count = try reader.arrayHead()
    switch (try reader.unsigned(), count) {
    case (Message.answerType, 5):
      let head = try reader.byteString()
      var headReader = CBORReader(head)
      try headReader.array(of: 3)
      let _: FixedBytes<16> = try headReader.fixedBytes()
      encoding = try headReader.tokenEncoding()
      token = try headReader.token(encoding)
      try headReader.finish()
      integrityProof = try reader.proof()
      deviceProof = try reader.proof()
      form = .session(head: head, sealed: try reader.byteString())
    case (Message.compatibilityType, 7):
      let nonce: Nonce = try reader.fixedBytes()
      guard nonce.isForCompatibility else { throw .unexpected }
      encoding = try reader.tokenEncoding()
      token = try reader.token(encoding)
      integrityProof = try reader.proof()
      deviceProof = try reader.proof()
      form = .compatibility(nonce: nonce, command: try reader.boundedText())
    default:
      throw .unexpected
    }
    try reader.finish()
  }
}

extension ProofMessage {
  /// Writes M2 of a session round.
  package static func encode<Sink: ByteSink & ~Copyable>(
    head: Span<UInt8>, integrityProof: MAC?, deviceProof: MAC?, sealed: Span<UInt8>,
    into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.appendCBOR(array: 5)
    try sink.appendCBOR(unsigned: Message.answerType)
    try sink.appendCBOR(bytes: head)
    if let integrityProof { try sink.appendCBOR(bytes: integrityProof.bytes) } else { try sink.appendCBORNull() }
    if let deviceProof { try sink.appendCBOR(bytes: deviceProof.bytes) } else { try sink.appendCBORNull() }
    try sink.appendCBOR(bytes: sealed)
  }

  /// Writes M2 of a compatibility round with both proofs. The top bit of `nonce` is zero.
  package static func encodeCompatibility<Sink: ByteSink & ~Copyable>(
    nonce: Nonce, encoding: TokenEncoding, token: Span<UInt8>, integrityProof: MAC, deviceProof: MAC,
    command: BoundedText<32>, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.appendCBOR(array: 7)
    try sink.appendCBOR(unsigned: Message.compatibilityType)
    try sink.appendCBOR(bytes: nonce.bytes)
    try sink.appendCBOR(unsigned: UInt64(encoding.rawValue))
    try sink.appendCBOR(bytes: token)
    try sink.appendCBOR(bytes: integrityProof.bytes)
    try sink.appendCBOR(bytes: deviceProof.bytes)
    try sink.appendCBOR(text: command.bytes)
  }
}

extension Nonce {
  /// Whether an app may choose the nonce: the top bit of its first byte is zero. The nonces of sessions have it set, so that no
  /// proof that was made for an app's nonce fits a session.
  public var isForCompatibility: Bool { self[0] & 0x80 == 0 }
}

extension CBORReader {
  fileprivate mutating func tokenEncoding() throws(EncodingFault) -> TokenEncoding {
    guard let raw = UInt8(exactly: try unsigned()), let encoding = TokenEncoding(rawValue: raw) else {
      throw .unexpected
    }
    return encoding
  }

  @_lifetime(copy self)
  fileprivate mutating func token(_ encoding: TokenEncoding) throws(EncodingFault) -> Span<UInt8> {
    let token = try byteString()
    switch encoding {
    case .reference: guard token.count == TokenReference.byteCount else { throw .unexpected }
    case .cose, .jose: guard token.count <= TokenOpener.maximumTokenByteCount else { throw .unexpected }
    }
    return token
  }

  fileprivate mutating func proof() throws(EncodingFault) -> MAC? {
    null() ? nil : try fixedBytes()
  }
}

/// The part of M2 that the transcript covers: `[prover_random, encoding, token]`.
package enum ProofMessageHead {
  /// Writes the head. `random` is fresh for each M2.
  package static func encode<Sink: ByteSink & ~Copyable>(
    random: FixedBytes<16>, encoding: TokenEncoding, token: Span<UInt8>, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.appendCBOR(array: 3)
    try sink.appendCBOR(bytes: random.bytes)
    try sink.appendCBOR(unsigned: UInt64(encoding.rawValue))
    try sink.appendCBOR(bytes: token)
  }
}
