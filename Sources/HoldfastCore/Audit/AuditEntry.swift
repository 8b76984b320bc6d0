/// One entry of the audit log.
package struct AuditEntry: Sendable, Equatable {
  /// The entry's number: 1 for the first entry, without gaps.
  package var sequence: UInt64
  /// The device's time, in Unix seconds: the later of the clock floor and the real clock.
  package var time: UInt64
  /// The event that the entry records.
  package var event: AuditEvent

  /// Creates an entry from its parts.
  package init(sequence: UInt64, time: UInt64, event: AuditEvent) {
    (self.sequence, self.time, self.event) = (sequence, time, event)
  }
}

extension AuditEntry {
  /// Writes the entry as the deterministic CBOR array `[sequence, time, kind, …]`, over which the hash chain runs.
  ///
  /// `[…, 0, status, command, kid / null, jti, subject, 0 session | 1 compatibility]` round,
  /// `[…, 1, [[status, count] …]]` answers to peers that proved nothing, `[…, 2, device id]` created,
  /// `[…, 3, boot count]` started, `[…, 4]` stopped, `[…, 5, kid]` issuer trusted, `[…, 6, kid]` issuer removed,
  /// `[…, 7, SHA-256 / null]` policy seen, `[…, 8, from, to]` clock floor moved, `[…, 9, kid, from, to]` generation
  /// floor moved, `[…, 10, device id]` reset, `[…, 11, 1 activation | 2 unlock, user]` code issued, `[…, 12, user]`
  /// activated, `[…, 13, user]` added, `[…, 14, user]` unlocked, `[…, 15, user]` removed, `[…, 16, …]` like 0, followed
  /// by the user, `[…, 17, status, kid / null, jti / null, count]` denied rounds, `[…, 18, count, head]` log cut after
  /// this entry, `[…, 19, round, index, SHA-256 / text]` parameter of an accepted round, `[…, 20, round, reason, text]`
  /// accepted round whose command failed; `round` is the number of the round's entry; `[…, 21, user, until]` locked,
  /// `[…, 22, kid / null]` key for policies set or removed, `[…, 23, round, text]` event of the actuator, `[…, 24, kid, audience,
  /// number]` bulletin taken, `[…, 25, kid, count]` receipt refused, `[…, 26, count]` entries lost that were not acknowledged. A round may
  /// end with `transport / null, [major, minor, patch]`, after the user.
  ///
  /// Source: docs/audit-log.md.
  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: 3 + event.detailCount)
    try sink.appendCBOR(unsigned: sequence)
    try sink.appendCBOR(unsigned: time)
    try event.encode(into: &sink)
  }

  /// Returns the number of an encoded entry, and its time in Unix seconds.
  package static func head(of bytes: Span<UInt8>) throws(EncodingFault) -> (sequence: UInt64, time: UInt64) {
    var reader = CBORReader(bytes)
    _ = try reader.arrayHead()
    return (try reader.unsigned(), try reader.unsigned())
  }

  #if !hasFeature(Embedded)
  /// Decodes an entry that ``encode(into:)`` wrote.
  package init(_ bytes: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(bytes)
    let count = try reader.arrayHead()
    sequence = try reader.unsigned()
    time = try reader.unsigned()
    event = try AuditEvent(&reader, detailCount: count - 3)
    guard count == 3 + event.detailCount else { throw .unexpected }
    try reader.finish()
  }
  #endif
}

extension AuditEvent {
  /// The number of items that follow the kind.
  fileprivate var detailCount: Int {
    switch self {
    case .round(let round): round.detailCount
    case .denied: 4
    case .unproved, .started, .userActivated, .userUnlocked, .entriesLost: 1
    case .bulletinTaken: 3
    case .receiptRefused: 2
    #if !hasFeature(Embedded)
    case .generationFloorMoved, .parameter, .failed: 3
    case .clockFloorMoved, .codeIssued, .logCut, .userLocked, .actuatorEvent: 2
    case .created, .issuerTrusted, .issuerRemoved, .policySeen, .policyKeySet, .reset: 1
    case .userAdded, .userRemoved: 1
    case .stopped: 0
    #endif
    }
  }

  fileprivate func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    switch self {
    case .round(let round):
      try sink.appendCBOR(unsigned: round.user == nil ? 0 : 16)
      try round.encode(into: &sink)
    case .unproved(let totals):
      try sink.appendCBOR(unsigned: 1)
      try totals.encode(into: &sink)
    case .started(let bootCount):
      try sink.appendCBOR(unsigned: 3)
      try sink.appendCBOR(unsigned: bootCount)
    case .userActivated(let user): try sink.appendUser(12, user)
    case .userUnlocked(let user): try sink.appendUser(14, user)
    case .denied(let rounds):
      try sink.appendCBOR(unsigned: 17)
      try rounds.encode(into: &sink)
    case .bulletinTaken(let keyID, let audience, let number):
      try sink.appendCBOR(unsigned: 24)
      try sink.appendCBOR(bytes: keyID.bytes)
      try sink.appendCBOR(bytes: audience.bytes)
      try sink.appendCBOR(unsigned: number)
    case .receiptRefused(let keyID, let count):
      try sink.appendCBOR(unsigned: 25)
      try sink.appendCBOR(bytes: keyID.bytes)
      try sink.appendCBOR(unsigned: count)
    case .entriesLost(let count):
      try sink.appendCBOR(unsigned: 26)
      try sink.appendCBOR(unsigned: count)
    #if !hasFeature(Embedded)
    case .created(let deviceID):
      try sink.appendCBOR(unsigned: 2)
      try sink.appendCBOR(bytes: deviceID.bytes)
    case .stopped:
      try sink.appendCBOR(unsigned: 4)
    case .issuerTrusted(let keyID):
      try sink.appendCBOR(unsigned: 5)
      try sink.appendCBOR(bytes: keyID.bytes)
    case .issuerRemoved(let keyID):
      try sink.appendCBOR(unsigned: 6)
      try sink.appendCBOR(bytes: keyID.bytes)
    case .policySeen(let digest):
      try sink.appendCBOR(unsigned: 7)
      if let digest { try sink.appendCBOR(bytes: digest.bytes) } else { try sink.appendCBORNull() }
    case .clockFloorMoved(let from, let to):
      try sink.appendCBOR(unsigned: 8)
      try sink.appendCBOR(unsigned: from)
      try sink.appendCBOR(unsigned: to)
    case .generationFloorMoved(let keyID, let from, let to):
      try sink.appendCBOR(unsigned: 9)
      try sink.appendCBOR(bytes: keyID.bytes)
      try sink.appendCBOR(unsigned: from)
      try sink.appendCBOR(unsigned: to)
    case .reset(let deviceID):
      try sink.appendCBOR(unsigned: 10)
      try sink.appendCBOR(bytes: deviceID.bytes)
    case .codeIssued(let purpose, let user):
      try sink.appendCBOR(unsigned: 11)
      try sink.appendCBOR(unsigned: UInt64(purpose.rawValue))
      try sink.appendCBOR(text: user.bytes)
    case .userAdded(let user): try sink.appendUser(13, user)
    case .userRemoved(let user): try sink.appendUser(15, user)
    case .userLocked(let user, let until):
      try sink.appendUser(21, user)
      try sink.appendCBOR(unsigned: until)
    case .logCut(let chain):
      try sink.appendCBOR(unsigned: 18)
      try sink.appendCBOR(unsigned: chain.count)
      try sink.appendCBOR(bytes: chain.head.bytes)
    case .parameter(let parameter): try parameter.encode(into: &sink)
    case .failed(let failure): try failure.encode(into: &sink)
    case .policyKeySet(let keyID):
      try sink.appendCBOR(unsigned: 22)
      if let keyID { try sink.appendCBOR(bytes: keyID.bytes) } else { try sink.appendCBORNull() }
    case .actuatorEvent(let event): try event.encode(into: &sink)
    #endif
    }
  }

  #if !hasFeature(Embedded)
  fileprivate init(_ reader: inout CBORReader, detailCount: Int) throws(EncodingFault) {
    switch try reader.unsigned() {
    case 0: self = .round(try AuditedRound(&reader, hasUser: false, detailCount: detailCount))
    case 16: self = .round(try AuditedRound(&reader, hasUser: true, detailCount: detailCount))
    case 1: self = .unproved(try UnauthenticatedTotals(&reader))
    case 2: self = .created(try reader.fixedBytes())
    case 3: self = .started(bootCount: try reader.unsigned())
    case 4: self = .stopped
    case 5: self = .issuerTrusted(try reader.fixedBytes())
    case 6: self = .issuerRemoved(try reader.fixedBytes())
    case 7: self = .policySeen(reader.null() ? nil : try reader.fixedBytes())
    case 8: self = .clockFloorMoved(from: try reader.unsigned(), to: try reader.unsigned())
    case 9:
      self = .generationFloorMoved(
        try reader.fixedBytes(), from: try reader.unsigned(), to: try reader.unsigned())
    case 10: self = .reset(try reader.fixedBytes())
    case 11:
      guard let purpose = OneUseCode.Purpose(rawValue: UInt8(clamping: try reader.unsigned())) else {
        throw .unexpected
      }
      self = .codeIssued(purpose, try reader.text())
    case 12: self = .userActivated(try reader.text())
    case 13: self = .userAdded(try reader.text())
    case 14: self = .userUnlocked(try reader.text())
    case 15: self = .userRemoved(try reader.text())
    case 17: self = .denied(try DeniedRounds(&reader))
    case 18: self = .logCut(AuditChain(count: try reader.unsigned(), head: try reader.fixedBytes()))
    case 19: self = .parameter(try AuditedParameter(&reader))
    case 20: self = .failed(try AuditedFailure(&reader))
    case 21: self = .userLocked(try reader.text(), until: try reader.unsigned())
    case 22: self = .policyKeySet(reader.null() ? nil : try reader.fixedBytes())
    case 23: self = .actuatorEvent(try AuditedActuatorEvent(&reader))
    case 24:
      self = .bulletinTaken(try reader.fixedBytes(), try reader.fixedBytes(), number: try reader.unsigned())
    case 25: self = .receiptRefused(try reader.fixedBytes(), count: try reader.unsigned())
    case 26: self = .entriesLost(count: try reader.unsigned())
    default: throw .unexpected
    }
  }
  #endif
}

extension ByteSink where Self: ~Copyable {
  fileprivate mutating func appendUser(_ kind: UInt64, _ user: BoundedText<32>) throws(Failure) {
    try appendCBOR(unsigned: kind)
    try appendCBOR(text: user.bytes)
  }
}

extension CBORReader {
  mutating func text<let capacity: Int>() throws(EncodingFault) -> BoundedText<capacity> {
    guard let text = BoundedText<capacity>(try textString()) else { throw .unexpected }
    return text
  }
}

/// An event that the audit log records.
package enum AuditEvent: Sendable, Equatable {
  /// A round whose peer had proved a measurement, and that was accepted, moved a floor, tested a code or used up a
  /// nonce. Other rounds of such peers are in ``denied(_:)``.
  case round(AuditedRound)
  /// The number of answers of each status to peers that had proved nothing, since the previous totals.
  case unproved(UnauthenticatedTotals)
  /// The server started. `bootCount` is the number of its starts.
  case started(bootCount: UInt64)
  /// A user received secrets with the owner's code.
  case userActivated(BoundedText<32>)
  /// A locked-out user used the owner's code.
  case userUnlocked(BoundedText<32>)
  /// Rounds that were denied and changed nothing, since the previous counts.
  case denied(DeniedRounds)
  /// The device took the bulletin with this number, of this key, for it or for one of its groups.
  case bulletinTaken(KeyID, AudienceID, number: UInt64)
  /// A receipt of this key, the log's home, for the entries up to this number named another hash than the log has, or an entry that the
  /// log does not have.
  case receiptRefused(KeyID, count: UInt64)
  /// The oldest entries were cut off because the log was full, and this many of them had not been acknowledged.
  case entriesLost(count: UInt64)
  // A microcontroller writes none of these itself, and has no room for their code.
  #if !hasFeature(Embedded)
  /// The state folder was created, for the device with this id.
  case created(DeviceID)
  /// The server shut down in order.
  case stopped
  /// The owner added the issuer key with this id to the trusted keys.
  case issuerTrusted(KeyID)
  /// The owner removed the issuer key with this id from the trusted keys.
  case issuerRemoved(KeyID)
  /// A policy took effect: SHA-256 of its file, or nil for a file that could not be used, so that every command is
  /// refused.
  case policySeen(Digest?)
  /// The owner moved the clock floor by hand, in Unix seconds.
  case clockFloorMoved(from: UInt64, to: UInt64)
  /// The owner moved the generation floor of a verifying key by hand.
  case generationFloorMoved(KeyID, from: UInt64, to: UInt64)
  /// The owner reset the device, which has this new id from then on.
  case reset(DeviceID)
  /// The owner created a code for a user.
  case codeIssued(OneUseCode.Purpose, BoundedText<32>)
  /// The owner added a user whose secrets were made elsewhere.
  case userAdded(BoundedText<32>)
  /// The owner removed a user.
  case userRemoved(BoundedText<32>)
  /// The owner locked a user until this time, in Unix seconds.
  case userLocked(BoundedText<32>, until: UInt64)
  /// The log no longer keeps the entries up to this point of the chain.
  case logCut(AuditChain)
  /// A parameter of an accepted round.
  case parameter(AuditedParameter)
  /// The command of an accepted round failed.
  case failed(AuditedFailure)
  /// The owner named the key with this id, which signs policies from then on; nil if policies need no signature any more.
  case policyKeySet(KeyID?)
  /// The actuator reports an event with the command of an accepted round.
  case actuatorEvent(AuditedActuatorEvent)
  #endif
}

/// The head of a hash chain over audit entries. Anyone who knows it can detect a change to an earlier entry.
public struct AuditChain: Sendable, Equatable {
  /// The number of entries, which is the sequence number of the last one.
  public var count: UInt64
  /// The hash of the last entry; 32 zero bytes before the first.
  public var head: Digest

  /// Creates a chain without entries.
  public init() {
    (count, head) = (0, Digest())
  }

  /// Creates a chain at a known entry.
  public init(count: UInt64, head: Digest) {
    (self.count, self.head) = (count, head)
  }

  /// Adds one encoded entry: the head becomes `SHA-256("holdfast/1 audit" ‖ 0x00 ‖ head ‖ entry)`.
  ///
  /// Source: docs/audit-log.md.
  public mutating func advance<Crypto: Cryptography & ~Copyable>(
    over entry: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    var hash = try cryptography.sha256()
    hash.append(domain: "holdfast/1 audit")
    hash.append(head.bytes)
    hash.append(entry)
    head = try hash.finish()
    count += 1
  }

  /// Writes the number of the last entry, and its hash.
  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(unsigned: count)
    try sink.appendCBOR(bytes: head.bytes)
  }
}
