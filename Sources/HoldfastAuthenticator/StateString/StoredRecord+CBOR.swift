import HoldfastCore
import HoldfastOpenSSL

extension StoredRecord {
  private static let fieldCount = 21

  /// Writes the record as an array of all its columns.
  func encode(into bytes: inout [UInt8]) {
    bytes.appendCBOR(array: Self.fieldCount)
    bytes.appendCBOR(text: Array(record.user.utf8).span)
    bytes.appendCBOR(unsigned: UInt64(record.index))
    bytes.appendCBOR(unsigned: UInt64(record.purpose.rawValue))
    bytes.appendCBOR(text: Array(record.issuer.utf8).span)
    bytes.appendCBOR(optional: record.deviceID.map { [UInt8]($0.bytes) })
    record.method.encode(into: &bytes)
    bytes.appendCBOR(unsigned: record.nextCounter)
    bytes.appendCBOR(unsigned: record.acknowledgedCounter)
    bytes.appendCBOR(integer: record.clockOffsetSeconds)
    bytes.appendCBOR(optional: record.lastTimeStep)
    bytes.appendCBOR(optional: record.lastSynchronised)
    bytes.appendCBOR(optional: record.lookAheadWindow)
    bytes.appendCBOR(optional: record.sealFieldByteLimit.map(UInt64.init))
    bytes.appendCBOR(unsigned: record.protectionGroup)
    bytes.appendCBOR(unsigned: record.isConfirmed ? 1 : 0)
    (secret?.protection ?? .none).encode(into: &bytes)
    if let secret { secret.bytes.withBytes { bytes.appendCBOR(bytes: $0) } } else { bytes.appendCBORNull() }
    bytes.appendCBOR(unsigned: UInt64(record.change.rawValue))
    bytes.appendCBOR(optional: undo)
    bytes.appendCBOR(optional: clientChallenge.map { Array($0.utf8) })
    bytes.appendCBOR(optional: record.changePosition)
  }

  /// Reads what ``encode(into:)`` writes.
  init(_ reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: Self.fieldCount)
    let user = try reader.text(1...Credential.maximumUserByteCount)
    let index = try reader.unsigned()
    let purpose = try reader.unsigned()
    let issuer = try reader.text(0...Credential.maximumIssuerByteCount)
    let deviceID: DeviceID? = reader.null() ? nil : try reader.fixedBytes()
    let method = try CodeMethod(&reader)
    let (nextCounter, acknowledgedCounter) = (try reader.unsigned(), try reader.unsigned())
    let clockOffsetSeconds = try reader.integer()
    let (lastTimeStep, lastSynchronised) = (try reader.optionalUnsigned(), try reader.optionalUnsigned())
    let (window, fieldLimit) = (try reader.optionalUnsigned(), try reader.optionalUnsigned())
    let (group, isConfirmed) = (try reader.unsigned(), try reader.unsigned())
    let protection = try Protection(&reader)
    let blinded =
      reader.null()
      ? nil
      : BlindedSecret(
        protection: protection, bytes: SecretBytes(copying: try reader.byteString()))
    let change = try reader.unsigned()
    undo = reader.null() ? nil : [UInt8](try reader.byteString())
    let challenge = reader.null() ? nil : DeviceChallenge(String(copying: try reader.byteString()))
    let changePosition = try reader.optionalUnsigned()
    guard purpose <= 255, let purpose = RecordPurpose(rawValue: UInt8(purpose)), purpose.suits(method),
      (1...UInt64(8)).contains(index), change <= 255, let change = ChangeProgress(rawValue: UInt8(change)),
      (1...UInt64(64)).contains(fieldLimit ?? 64), isConfirmed <= 1,
      Record.clockOffsetBounds.contains(clockOffsetSeconds),
      (1...Credential.maximumSecretByteCount).contains(blinded?.bytes.count ?? 1), (undo?.count ?? 0) <= 512,
      blinded != nil || change == .erased || change == .importing,
      !user.unicodeScalars.contains(where: \.isControl)
    else { throw .unexpected }
    secret = blinded
    clientChallenge = challenge?.digits
    record = Record(
      user: user, index: Int(index), purpose: purpose, issuer: issuer, deviceID: deviceID, method: method,
      nextCounter: nextCounter, acknowledgedCounter: acknowledgedCounter, clockOffsetSeconds: clockOffsetSeconds,
      lastTimeStep: lastTimeStep, lastSynchronised: lastSynchronised, lookAheadWindow: window,
      sealFieldByteLimit: fieldLimit.map { Int($0) }, protection: protection.kind, protectionGroup: group,
      isConfirmed: isConfirmed == 1, change: change, changePosition: changePosition)
  }
}

extension [UInt8] {
  fileprivate mutating func appendCBOR(optional number: UInt64?) {
    if let number { appendCBOR(unsigned: number) } else { appendCBORNull() }
  }

  fileprivate mutating func appendCBOR(optional bytes: [UInt8]?) {
    if let bytes { appendCBOR(bytes: bytes.span) } else { appendCBORNull() }
  }
}

extension CBORReader {
  fileprivate mutating func optionalUnsigned() throws(EncodingFault) -> UInt64? {
    null() ? nil : try unsigned()
  }

  fileprivate mutating func text(_ byteCounts: ClosedRange<Int>) throws(EncodingFault) -> String {
    let text = try textString()
    guard byteCounts.contains(text.count) else { throw .unexpected }
    return String(copying: text)
  }
}

extension String {
  fileprivate init(copying bytes: Span<UInt8>) {
    self.init(decoding: [UInt8](bytes), as: UTF8.self)
  }
}
