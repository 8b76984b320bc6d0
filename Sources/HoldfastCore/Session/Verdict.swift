/// M3, device to prover: `[3, status, sealed / null]`. The span points into the message.
public struct VerdictMessage: ~Escapable {
  public let status: Status
  /// The encrypted reply and its 16-byte tag; empty when the device sent null.
  public let sealed: Span<UInt8>
  public let isSealed: Bool

  /// Decodes M3.
  @_lifetime(copy message)
  public init(_ message: Span<UInt8>) throws(EncodingFault) {
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
  public static func encode<Sink: ByteSink & ~Copyable>(
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

/// What M3 holds under its seal: `{1: result, 2: clock?, 3: generation floor?, 4: retry after?, 5: missing factors?,
/// 6: highest request number?}`.
public struct Reply: ~Copyable {
  /// The longest result, in bytes.
  public static let maximumResultByteCount = 1024

  /// What the command gave; when it was denied, a ``Refusal`` or nothing.
  public var result = ByteBuffer<1024>()
  public var notice: Notice

  public init(notice: Notice = Notice()) {
    self.notice = notice
  }

  /// Decodes it. A later version of the protocol may add labels above 6: those are checked for deterministic encoding, and
  /// ignored.
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
      case 7...: try reader.skipValue()
      default: throw .unexpected
      }
    }
    try reader.finish()
  }

  /// Writes it.
  public borrowing func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    let missing = notice.missingFactors.map { UInt64($0.rawValue) }
    var count = 1
    if notice.clock != nil { count += 1 }
    if notice.generationFloor != nil { count += 1 }
    if notice.retryAfterSeconds != nil { count += 1 }
    if missing != nil { count += 1 }
    if notice.highestRequestNumber != nil { count += 1 }
    try sink.appendCBOR(map: count)
    try sink.appendCBOR(unsigned: 1)
    try sink.appendCBOR(bytes: result.bytes)
    try sink.appendOptional(2, notice.clock)
    try sink.appendOptional(3, notice.generationFloor)
    try sink.appendOptional(4, notice.retryAfterSeconds)
    try sink.appendOptional(5, missing)
    try sink.appendOptional(6, notice.highestRequestNumber)
  }
}

extension ByteBuffer<1024> {
  /// Says in a result why there is none. A word is shorter than any buffer.
  mutating func append(_ refusal: Refusal) {
    do throws(EncodingFault) { try append(refusal.word) } catch { return }
  }
}

extension ByteSink where Self: ~Copyable {
  fileprivate mutating func appendOptional(_ label: UInt64, _ value: UInt64?) throws(Failure) {
    guard let value else { return }
    try appendCBOR(unsigned: label)
    try appendCBOR(unsigned: value)
  }
}

/// What a device answers, as one byte in M3.
public enum Status: UInt8, Sendable, CaseIterable {
  case accepted = 0
  /// Any cryptographic or structural fault of the token.
  case tokenInvalid = 1
  case tokenExpired = 2
  case tokenRevoked = 3
  case tokenUnknown = 4
  case integrityMismatch = 5
  case deviceMismatch = 6
  case factorMissing = 7
  case otpRejected = 8
  case sealRejected = 9
  case lockedOut = 10
  case commandRefused = 11
  case challengeExpired = 12
  case malformed = 13
  /// Too many peers, or a bounded store is full.
  case busy = 14
  case usesExhausted = 15
  case versionTooOld = 16
  /// A fault of the device's own.
  case `internal` = 17

  /// Whether only a device that could open the token may say so: its M3 is sealed.
  public var needsAuthentication: Bool {
    switch self {
    case .accepted, .tokenRevoked, .tokenExpired, .versionTooOld, .usesExhausted, .integrityMismatch, .commandRefused,
      .factorMissing, .lockedOut, .otpRejected, .sealRejected:
      true
    case .tokenInvalid, .tokenUnknown, .deviceMismatch, .challengeExpired, .malformed, .busy, .internal:
      false
    }
  }
}
