import HoldfastCore

/// One entry of the audit log.
public struct AuditEntry: Sendable, Equatable {
  /// From 1 on, without gaps.
  public var sequence: UInt64
  /// The device's time, in Unix seconds: the later of clock floor and real clock.
  public var time: UInt64
  public var event: AuditEvent

  public init(sequence: UInt64, time: UInt64, event: AuditEvent) {
    (self.sequence, self.time, self.event) = (sequence, time, event)
  }
}

extension AuditEntry {
  /// The deterministic CBOR array `[sequence, time, kind, …]` that the chain is made over.
  ///
  /// `[…, 0, status, command, kid / null, jti, subject, 0 session | 1 compatibility]`, `[…, 1, [[status, count] …]]`,
  /// `[…, 2, device id]` created, `[…, 3, boot count]` started, `[…, 4]` stopped, `[…, 5, kid]` issuer trusted,
  /// `[…, 6, kid]` issuer removed, `[…, 7, SHA-256 / null]` policy seen, `[…, 8, from, to]` clock floor moved,
  /// `[…, 9, kid, from, to]` generation floor moved, `[…, 10, device id]` reset,
  /// `[…, 11, 1 activation | 2 unlock, user]` code issued, `[…, 12, user]` activated, `[…, 13, user]` added,
  /// `[…, 14, user]` unlocked, `[…, 15, user]` removed, `[…, 16, …]` as 0 and the user whose codes were needed.
  public func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: 3 + event.detailCount)
    bytes.appendCBOR(unsigned: sequence)
    bytes.appendCBOR(unsigned: time)
    event.append(to: &bytes)
    return bytes
  }

  /// Reads what ``encoded()`` wrote.
  public init(_ bytes: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(bytes)
    let count = try reader.arrayHead()
    sequence = try reader.unsigned()
    time = try reader.unsigned()
    event = try AuditEvent(&reader)
    guard count == 3 + event.detailCount else { throw .unexpected }
    try reader.finish()
  }
}

extension AuditEvent {
  /// How many items follow the kind.
  fileprivate var detailCount: Int {
    switch self {
    case .round(let round): round.user == nil ? 6 : 7
    case .generationFloorMoved: 3
    case .clockFloorMoved, .codeIssued: 2
    case .unproved, .created, .started, .issuerTrusted, .issuerRemoved, .policySeen, .reset: 1
    case .userActivated, .userAdded, .userUnlocked, .userRemoved: 1
    case .stopped: 0
    }
  }

  fileprivate func append(to bytes: inout [UInt8]) {
    switch self {
    case .round(let round):
      bytes.appendCBOR(unsigned: round.user == nil ? 0 : 16)
      round.append(to: &bytes)
    case .unproved(let totals):
      bytes.appendCBOR(unsigned: 1)
      bytes.appendCBOR(array: totals.count)
      for total in totals {
        bytes.appendCBOR(array: 2)
        bytes.appendCBOR(unsigned: UInt64(total.status.rawValue))
        bytes.appendCBOR(unsigned: total.count)
      }
    case .created(let deviceID):
      bytes.appendCBOR(unsigned: 2)
      bytes.appendCBOR(bytes: deviceID.bytes)
    case .started(let bootCount):
      bytes.appendCBOR(unsigned: 3)
      bytes.appendCBOR(unsigned: bootCount)
    case .stopped:
      bytes.appendCBOR(unsigned: 4)
    case .issuerTrusted(let keyID):
      bytes.appendCBOR(unsigned: 5)
      bytes.appendCBOR(bytes: keyID.bytes)
    case .issuerRemoved(let keyID):
      bytes.appendCBOR(unsigned: 6)
      bytes.appendCBOR(bytes: keyID.bytes)
    case .policySeen(let digest):
      bytes.appendCBOR(unsigned: 7)
      if let digest { bytes.appendCBOR(bytes: digest.bytes) } else { bytes.appendCBORNull() }
    case .clockFloorMoved(let from, let to):
      bytes.appendCBOR(unsigned: 8)
      bytes.appendCBOR(unsigned: from)
      bytes.appendCBOR(unsigned: to)
    case .generationFloorMoved(let keyID, let from, let to):
      bytes.appendCBOR(unsigned: 9)
      bytes.appendCBOR(bytes: keyID.bytes)
      bytes.appendCBOR(unsigned: from)
      bytes.appendCBOR(unsigned: to)
    case .reset(let deviceID):
      bytes.appendCBOR(unsigned: 10)
      bytes.appendCBOR(bytes: deviceID.bytes)
    case .codeIssued(let purpose, let user):
      bytes.appendCBOR(unsigned: 11)
      bytes.appendCBOR(unsigned: UInt64(purpose.rawValue))
      bytes.appendCBOR(text: user.bytes)
    case .userActivated(let user): bytes.appendUser(12, user)
    case .userAdded(let user): bytes.appendUser(13, user)
    case .userUnlocked(let user): bytes.appendUser(14, user)
    case .userRemoved(let user): bytes.appendUser(15, user)
    }
  }

  fileprivate init(_ reader: inout CBORReader) throws(EncodingFault) {
    switch try reader.unsigned() {
    case 0: self = .round(try AuditedRound(&reader))
    case 16:
      var round = try AuditedRound(&reader)
      round.user = try reader.text()
      self = .round(round)
    case 1:
      var totals: [UnprovedTotal] = []
      for _ in 0..<(try reader.arrayHead()) {
        try reader.array(of: 2)
        totals.append(UnprovedTotal(status: try reader.status(), count: try reader.unsigned()))
      }
      self = .unproved(totals)
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
    default: throw .unexpected
    }
  }
}

extension AuditedRound {
  fileprivate func append(to bytes: inout [UInt8]) {
    bytes.appendCBOR(unsigned: UInt64(status.rawValue))
    bytes.appendCBOR(text: command.bytes)
    if let verifyingKey { bytes.appendCBOR(bytes: verifyingKey.bytes) } else { bytes.appendCBORNull() }
    bytes.appendCBOR(bytes: tokenID.bytes)
    bytes.appendCBOR(text: subject.bytes)
    bytes.appendCBOR(unsigned: isCompatibility ? 1 : 0)
    if let user { bytes.appendCBOR(text: user.bytes) }
  }

  fileprivate init(_ reader: inout CBORReader) throws(EncodingFault) {
    status = try reader.status()
    command = try reader.text()
    verifyingKey = reader.null() ? nil : try reader.fixedBytes()
    tokenID = try reader.fixedBytes()
    subject = try reader.text()
    let form = try reader.unsigned()
    guard form <= 1 else { throw .unexpected }
    isCompatibility = form == 1
  }
}

extension [UInt8] {
  fileprivate mutating func appendUser(_ kind: UInt64, _ user: BoundedText<32>) {
    appendCBOR(unsigned: kind)
    appendCBOR(text: user.bytes)
  }
}

extension CBORReader {
  fileprivate mutating func status() throws(EncodingFault) -> Status {
    guard let raw = UInt8(exactly: try unsigned()), let status = Status(rawValue: raw) else { throw .unexpected }
    return status
  }

  fileprivate mutating func text<let capacity: Int>() throws(EncodingFault) -> BoundedText<capacity> {
    guard let text = BoundedText<capacity>(try textString()) else { throw .unexpected }
    return text
  }
}
