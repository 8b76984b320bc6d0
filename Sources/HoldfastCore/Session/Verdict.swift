/// M3, from device to prover: `[3, status, sealed / null]`. The span points into the message.
package struct VerdictMessage: ~Escapable {
  /// The status of the round.
  package let status: Status
  /// The encrypted reply and its 16-byte tag; empty if the device sent null.
  package let sealed: Span<UInt8>
  /// Whether there is a sealed reply.
  package let isSealed: Bool

  /// Decodes M3.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for another structure or status, `tooLong`
  ///   above 4096 bytes.
  @_lifetime(copy message)
  package init(_ message: Span<UInt8>) throws(EncodingFault) {
    guard message.count <= Message.maximumByteCount else { throw .tooLong }
    var reader = CBORReader(message)
    try reader.array(of: 3)
    guard try reader.unsigned() == Message.verdictType, let raw = UInt8(exactly: try reader.unsigned()),
      let status = Status(rawValue: raw)
    else { throw .unexpected }
    self.status = status
    isSealed = !reader.null()
    sealed = isSealed ? try reader.byteString() : Span()
    try reader.finish()
  }

  /// Writes M3 without a seal.
  package static func encode<Sink: ByteSink & ~Copyable>(
    unsealed status: Status, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.appendCBOR(array: 3)
    try sink.appendCBOR(unsigned: Message.verdictType)
    try sink.appendCBOR(unsigned: UInt64(status.rawValue))
    try sink.appendCBORNull()
  }

  /// Writes M3 around `sealed`.
  package static func encode<Sink: ByteSink & ~Copyable>(
    _ status: Status, sealed: Span<UInt8>, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.appendCBOR(array: 3)
    try sink.appendCBOR(unsigned: Message.verdictType)
    try sink.appendCBOR(unsigned: UInt64(status.rawValue))
    try sink.appendCBOR(bytes: sealed)
  }
}

/// The contents of M3 under its seal:
/// `{1: result, 2: clock?, 3: generation floor?, 4: retry after?, 5: missing factors?, 6: highest request number?,
/// 7: state of the bulletins?, 8: 1?}`.
public struct VerdictBody: ~Copyable {
  /// The command's result; for a denial, the word of a ``Refusal`` or nothing; for a command that failed, the words of
  /// the actuator.
  public var result = ResultBuffer()
  /// The optional parts of the reply.
  public var notice: Notice

  /// Creates a reply with an empty result.
  public init(notice: Notice = Notice()) {
    self.notice = notice
  }

  /// Decodes a reply. A later version of the protocol may add labels above 8. Those are checked for deterministic
  /// encoding, and ignored.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for another structure, `tooLong` for a result
  ///   above 1024 bytes.
  public init(_ plaintext: Span<UInt8>) throws(EncodingFault) {
    notice = Notice()
    var reader = CBORReader(plaintext)
    var order = CBORLabelOrder()
    let count = try reader.mapHead()
    guard count >= 1 else { throw .unexpected }
    try reader.label(1, &order)
    try result.append(try reader.byteString())
    for _ in 1..<count {
      switch try reader.label(&order) {
      case 2: notice.clock = try reader.unsigned()
      case 3: notice.generationFloor = try reader.unsigned()
      case 4: notice.retryAfterSeconds = try reader.unsigned()
      case 5:
        guard let bits = UInt8(exactly: try reader.unsigned()) else { throw .unexpected }
        notice.missingFactors = Factors(rawValue: bits)
      case 6: notice.highestRequestNumber = try reader.unsigned()
      #if !hasFeature(Embedded)
      case 7: notice.bulletinState = try reader.bulletinState()
      case 8: notice.hasAuditPage = try reader.isOne()
      #endif
      case 7...: try reader.skipValue()
      default: throw .unexpected
      }
    }
    try reader.finish()
  }

  /// Writes the reply as deterministic CBOR.
  public borrowing func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    let missing = notice.missingFactors.map { UInt64($0.rawValue) }
    var count = 1
    if notice.clock != nil { count += 1 }
    if notice.generationFloor != nil { count += 1 }
    if notice.retryAfterSeconds != nil { count += 1 }
    if missing != nil { count += 1 }
    if notice.highestRequestNumber != nil { count += 1 }
    if notice.bulletinState != nil { count += 1 }
    if notice.hasAuditPage { count += 1 }
    try sink.appendCBOR(map: count)
    try sink.appendCBOR(unsigned: 1)
    try sink.appendCBOR(bytes: result.bytes)
    try sink.appendOptional(2, notice.clock)
    try sink.appendOptional(3, notice.generationFloor)
    try sink.appendOptional(4, notice.retryAfterSeconds)
    try sink.appendOptional(5, missing)
    try sink.appendOptional(6, notice.highestRequestNumber)
    if let state = notice.bulletinState {
      try sink.appendCBOR(unsigned: 7)
      try sink.appendCBOR(bytes: state.bytes)
    }
    if notice.hasAuditPage { try sink.appendOptional(8, 1) }
  }
}

#if !hasFeature(Embedded)
extension CBORReader {
  /// Reads the state of the bulletins. Any other value is that of a later version, and ignored.
  fileprivate mutating func bulletinState() throws(EncodingFault) -> BulletinState? {
    guard try nextMajorType() == .bytes else {
      try skipValue()
      return nil
    }
    return BulletinState(try byteString())
  }

  /// Returns whether the value is 1. Any other value is that of a later version, and ignored.
  fileprivate mutating func isOne() throws(EncodingFault) -> Bool {
    guard try nextMajorType() == .unsigned else {
      try skipValue()
      return false
    }
    return try unsigned() == 1
  }
}
#endif

extension ResultBuffer {
  /// Appends the word of `refusal`, which always fits into an empty buffer.
  mutating func append(_ refusal: Refusal) {
    do throws(EncodingFault) { try append(refusal.word) } catch { return }
  }

  /// Appends the words of `failure`, which always fit into an empty buffer.
  mutating func append(_ failure: ActuatorFailure) {
    guard !failure.isUnknownCommand else { return append(Refusal.unknownToActuator) }
    do throws(EncodingFault) { try append(failure.text.bytes) } catch { return }
  }
}

extension ByteSink where Self: ~Copyable {
  fileprivate mutating func appendOptional(_ label: UInt64, _ value: UInt64?) throws(Failure) {
    guard let value else { return }
    try appendCBOR(unsigned: label)
    try appendCBOR(unsigned: value)
  }
}

/// The status of a round, one byte in M3.
///
/// Source: docs/protocol.md, Statuses.
public enum Status: UInt8, Sendable, CaseIterable {
  /// The device carried out the command, in this round or, for a repetition, in an earlier one.
  case accepted = 0
  /// The token has any cryptographic or structural fault, its issuer is not trusted, it is for another device, or its
  /// `iat` is implausible.
  case tokenInvalid = 1
  /// The token's `exp` is not above the device's time, or the token is older than policy allows.
  case tokenExpired = 2
  /// The token's generation is below the floor.
  case tokenRevoked = 3
  /// The device remembers no token under this reference.
  case tokenUnknown = 4
  /// An integrity proof (IMP) was given and is wrong.
  case integrityMismatch = 5
  /// The device proof (DMP), for the prover's host, is wrong or absent, or a compatibility nonce was used before.
  case deviceMismatch = 6
  /// The command needs a proof or a code that was not given.
  case factorMissing = 7
  /// The one-time password is wrong; in an activation or an unlocking, the owner's code or a MAC is not valid.
  case otpRejected = 8
  /// The seal is wrong.
  case sealRejected = 9
  /// The user gave too many wrong codes.
  case lockedOut = 10
  /// The device refuses the command; a ``Refusal`` says why.
  case commandRefused = 11
  /// M2 began more than 30 s after M1, or the challenge was answered before.
  case challengeExpired = 12
  /// The message is not as the protocol defines it.
  case malformed = 13
  /// The device has no room for the peer or in a bounded store, it is still carrying out the same request, or a user's
  /// challenge is pending.
  case busy = 14
  /// All rounds that the token allows (`max`) were accepted.
  case usesExhausted = 15
  /// The app version is below policy's minimum.
  case versionTooOld = 16
  /// The device itself has a fault; in a repetition, the outcome may also be unknown.
  case `internal` = 17

  // A new status: its case above, one counter more, its row and its text below.

  /// One counter for each status, by number.
  package typealias Counters = InlineArray<18, UInt32>

  /// The number of statuses. Their numbers are from 0 to one less.
  package static var count: Int { Counters.count }

  /// The table of statuses.
  package var row: Row {
    switch self {
    case .accepted: Row(sealed: true)
    case .tokenInvalid: Row(slows: .always)
    case .tokenExpired: Row(sealed: true, byRule: true)
    case .tokenRevoked: Row(sealed: true, byRule: true)
    case .tokenUnknown: Row(slows: .whenRepeated)
    case .integrityMismatch: Row(sealed: true, slows: .always)
    case .deviceMismatch: Row(slows: .always)
    case .factorMissing: Row(sealed: true, byRule: true)
    case .otpRejected: Row(sealed: true, slows: .whenUnsealed)
    case .sealRejected: Row(sealed: true)
    case .lockedOut: Row(sealed: true)
    case .commandRefused: Row(sealed: true, byRule: true)
    case .challengeExpired, .malformed, .busy: Row()
    case .usesExhausted: Row(sealed: true, byRule: true)
    case .versionTooOld: Row(sealed: true, byRule: true)
    case .internal: Row()
    }
  }

  /// A row of the table.
  package struct Row: Sendable {
    /// Whether M3 with the status is always sealed.
    package let isAlwaysSealed: Bool
    /// The rounds with the status that count towards slowing the connection.
    package let slows: Slowing
    /// Whether the status comes from a rule over claims, the command and the device's state, and not from a key, a
    /// proof or a code.
    package let isByRule: Bool

    fileprivate init(sealed: Bool = false, slows: Slowing = .never, byRule: Bool = false) {
      (isAlwaysSealed, self.slows, isByRule) = (sealed, slows, byRule)
    }
  }

  /// The rounds with a status that count towards slowing the connection: none, all, those with an unsealed M3, or those
  /// after the first since the last sealed M3.
  package enum Slowing: Sendable {
    case never, always, whenUnsealed, whenRepeated
  }

  /// Whether only a device that could open the token may send this status: its M3 is always sealed.
  public var needsAuthentication: Bool { row.isAlwaysSealed }

  /// A text for people. A board has none of these texts, because nothing there calls this.
  package var text: StaticString {
    switch self {
    case .accepted: "accepted"
    case .tokenInvalid: "the device does not accept the measurement token"
    case .tokenExpired: "the measurement token has expired"
    case .tokenRevoked: "the issuer or the owner has revoked the measurement token"
    case .tokenUnknown: "the device does not remember the token, and did not accept the whole token"
    case .integrityMismatch: "the app or its environment has changed since the baseline"
    case .deviceMismatch:
      "this host's measurements differ from those of the enrolled host, or the answer was used before"
    case .factorMissing: "the command needs further factors"
    case .otpRejected: "the one-time password was rejected"
    case .sealRejected: "the seal was rejected"
    case .lockedOut: "the user is locked out for now"
    case .commandRefused: "the device refuses that command"
    case .challengeExpired: "the answer came too late"
    case .malformed: "the device could not read the message"
    case .busy: "the device is busy or its store is full"
    case .usesExhausted: "the measurement token is used up"
    case .versionTooOld: "the app is older than the device's owner allows"
    case .internal: "the device or its machine had a fault, or the device does not answer its bridge"
    }
  }
}
