/// The audit log's record of a round. It holds no secret.
package struct AuditedRound: Sendable, Equatable {
  /// The status that the round ended with.
  package var status: Status
  /// The command that was requested, at most 32 bytes.
  package var command: BoundedText<32>
  /// The key that signed or authenticated the token; nil for an unsigned one.
  package var verifyingKey: KeyID?
  /// The token's id (`jti`), 16 bytes.
  package var tokenID: TokenID
  /// The app that the token names (`sub`), at most 64 bytes.
  package var subject: BoundedText<64>
  /// Whether it was a compatibility round.
  package var isCompatibility: Bool
  /// The user whose codes were compared, or the user that `host-code` or `user-sync` named; nil if there is none.
  package var user: BoundedText<32>?
  /// Whether the request had been accepted before, so that the device did not act. The audit log never contains such a
  /// round.
  package var isRepetition = false
  #if !hasFeature(Embedded)
  /// The transport and the version of the app; nil in entries of earlier versions.
  package var origin: RoundOrigin?
  #endif

  /// Creates the record of a round that ended elsewhere, for a test or another store.
  package init(
    status: Status, command: BoundedText<32>, verifyingKey: KeyID?, tokenID: TokenID, subject: BoundedText<64>,
    isCompatibility: Bool, user: BoundedText<32>?
  ) {
    (self.status, self.command, self.verifyingKey, self.tokenID) = (status, command, verifyingKey, tokenID)
    (self.subject, self.isCompatibility, self.user) = (subject, isCompatibility, user)
  }

  /// Creates the record of `round`, which ended with `status`.
  package init(_ round: borrowing AppraisalInput, status: Status) {
    self.status = status
    command = round.command
    verifyingKey = round.verifyingKey
    tokenID = round.tokenID
    subject = round.subject
    isCompatibility = round.compatibilityNonce != nil
    user = round.codeUser
    #if !hasFeature(Embedded)
    origin = RoundOrigin(transport: round.transport, version: round.version)
    #endif
  }
}

extension AuditedRound {
  /// Writes the items that follow the kind.
  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(unsigned: UInt64(status.rawValue))
    try sink.appendCBOR(text: command.bytes)
    if let verifyingKey { try sink.appendCBOR(bytes: verifyingKey.bytes) } else { try sink.appendCBORNull() }
    try sink.appendCBOR(bytes: tokenID.bytes)
    try sink.appendCBOR(text: subject.bytes)
    try sink.appendCBOR(unsigned: isCompatibility ? 1 : 0)
    if let user { try sink.appendCBOR(text: user.bytes) }
    #if !hasFeature(Embedded)
    try origin?.encode(into: &sink)
    #endif
  }

  #if !hasFeature(Embedded)
  /// Reads the items that follow the kind.
  init(
    _ reader: inout CBORReader, hasUser: Bool, detailCount: Int
  ) throws(EncodingFault) {
    status = try reader.status()
    command = try reader.text()
    verifyingKey = reader.null() ? nil : try reader.fixedBytes()
    tokenID = try reader.fixedBytes()
    subject = try reader.text()
    let form = try reader.unsigned()
    guard form <= 1 else { throw .unexpected }
    isCompatibility = form == 1
    if hasUser { user = try reader.text() }
    // Earlier versions wrote rounds without it.
    if detailCount == self.detailCount + 2 { origin = try RoundOrigin(&reader) }
  }
  #endif

  /// The number of items that follow the kind.
  var detailCount: Int {
    let count = user == nil ? 6 : 7
    #if hasFeature(Embedded)
    return count
    #else
    return origin == nil ? count : count + 2
    #endif
  }
}
