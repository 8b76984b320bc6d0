import HoldfastCore

/// What is kept of a token until it has expired: how often it was used, or a compatibility nonce that came with it.
struct KeptItem: Equatable {
  /// The key that signed the token; nil for an unsigned one.
  let verifyingKey: KeyID?
  let tokenID: TokenID
  var expires: UInt64
  var content: Content

  enum Content: Equatable {
    case uses(UInt64)
    case nonce(FixedBytes<16>)
  }

  /// Whether both are the uses of one token, or the same nonce with one token.
  func isAbout(theSameAs other: KeptItem) -> Bool {
    guard verifyingKey == other.verifyingKey, tokenID == other.tokenID else { return false }
    switch (content, other.content) {
    case (.uses, .uses): return true
    case (.nonce(let nonce), .nonce(let otherNonce)): return nonce == otherNonce
    default: return false
    }
  }
}

extension KeptItem {
  init(_ item: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(item)
    let kind = try reader.itemKind()
    verifyingKey = try reader.optionalKeyID()
    tokenID = try reader.fixedBytes()
    expires = try reader.unsigned()
    switch kind {
    case .uses: content = .uses(try reader.unsigned())
    case .nonce: content = .nonce(try reader.fixedBytes())
    default: throw .unexpected
    }
    try reader.finish()
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    switch content {
    case .uses(let count):
      try encodeToken(.uses, into: &sink)
      try sink.appendCBOR(unsigned: count)
    case .nonce(let nonce):
      try encodeToken(.nonce, into: &sink)
      try sink.appendCBOR(bytes: nonce.bytes)
    }
  }

  private func encodeToken<Sink: ByteSink & ~Copyable>(
    _ kind: ItemKind, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.begin(kind, elementCount: 5)
    try sink.appendOptional(verifyingKey)
    try sink.appendCBOR(bytes: tokenID.bytes)
    try sink.appendCBOR(unsigned: expires)
  }
}
