/// Rounds with one token that ended in one status, were denied and changed nothing else.
///
/// A device counts them in memory and writes the counts once a minute at most: a crash loses that minute's counts. Only so many
/// tokens and statuses are told apart; beyond them, rounds are counted by status.
public struct DeniedRounds: Sendable, Equatable {
  public var status: Status
  /// The key that signed the token; nil for an unsigned token, and where tokens are not told apart.
  public var verifyingKey: KeyID?
  /// Nil where tokens are not told apart.
  public var tokenID: TokenID?
  /// How many, at least 1.
  public var count: UInt64

  public init(status: Status, verifyingKey: KeyID?, tokenID: TokenID?, count: UInt64) {
    (self.status, self.verifyingKey, self.tokenID, self.count) = (status, verifyingKey, tokenID, count)
  }
}

extension DeniedRounds {
  /// Writes `status, kid / null, jti / null, count`.
  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(unsigned: UInt64(status.rawValue))
    if let verifyingKey { try sink.appendCBOR(bytes: verifyingKey.bytes) } else { try sink.appendCBORNull() }
    if let tokenID { try sink.appendCBOR(bytes: tokenID.bytes) } else { try sink.appendCBORNull() }
    try sink.appendCBOR(unsigned: count)
  }

  init(_ reader: inout CBORReader) throws(EncodingFault) {
    status = try reader.status()
    verifyingKey = reader.null() ? nil : try reader.fixedBytes()
    tokenID = reader.null() ? nil : try reader.fixedBytes()
    count = try reader.unsigned()
    guard count > 0, status != .accepted, tokenID != nil || verifyingKey == nil else { throw .unexpected }
  }
}
