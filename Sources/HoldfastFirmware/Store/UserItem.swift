import HoldfastCore

/// A user in the journal: `[7, id, name, failures, failed factors, locked until, clock offset, last accepted, [challenge,
/// expires] / null, account / null, account / null]`. An account is `[method, next position, resynchronising / null]`. The
/// account for passwords comes first, the one for seals second.
package struct UserItem {
  package let name: BoundedText<32>
  package var record: UserRecord

  package init(name: BoundedText<32>, record: UserRecord) {
    (self.name, self.record) = (name, record)
  }

  package init(_ item: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(item)
    guard try reader.itemKind() == .user else { throw .unexpected }
    let id = try reader.unsigned()
    name = try reader.name()
    let failureCount = try reader.unsigned()
    guard let factors = UInt8(exactly: try reader.unsigned()) else { throw .unexpected }
    let lockedUntil = try reader.unsigned()
    let clockOffset = try reader.integer()
    record = UserRecord(id: id, lastAccepted: try reader.unsigned())
    (record.failureCount, record.failedFactors) = (failureCount, Factors(rawValue: factors))
    (record.lockedUntil, record.clockOffsetSeconds) = (lockedUntil, clockOffset)
    record.challenge = try reader.challenge()
    for purpose in CodePurpose.given { record.accounts[purpose] = try reader.account() }
    try reader.finish()
  }

  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.begin(.user)
    try sink.appendCBOR(unsigned: record.id)
    try sink.appendCBOR(text: name.bytes)
    try sink.appendCBOR(unsigned: record.failureCount)
    try sink.appendCBOR(unsigned: UInt64(record.failedFactors.rawValue))
    try sink.appendCBOR(unsigned: record.lockedUntil)
    try sink.appendCBOR(integer: record.clockOffsetSeconds)
    try sink.appendCBOR(unsigned: record.lastAccepted)
    try sink.append(record.challenge)
    for purpose in CodePurpose.given { try sink.append(record.accounts[purpose]) }
  }
}

extension ByteSink where Self: ~Copyable {
  fileprivate mutating func append(_ challenge: IssuedChallenge?) throws(Failure) {
    guard let challenge else { return try appendCBORNull() }
    try appendCBOR(array: 2)
    try appendCBOR(bytes: challenge.bytes.bytes)
    try appendCBOR(unsigned: challenge.expires)
  }

  fileprivate mutating func append(_ account: CodeAccount?) throws(Failure) {
    guard let account else { return try appendCBORNull() }
    try appendCBOR(array: 3)
    try account.method.encode(into: &self)
    try appendCBOR(unsigned: account.nextPosition)
    guard let position = account.resynchronisingPosition else { return try appendCBORNull() }
    try appendCBOR(unsigned: position)
  }
}

extension CBORReader {
  fileprivate mutating func challenge() throws(EncodingFault) -> IssuedChallenge? {
    if null() { return nil }
    try array(of: 2)
    return IssuedChallenge(bytes: try fixedBytes(), expires: try unsigned())
  }

  fileprivate mutating func account() throws(EncodingFault) -> CodeAccount? {
    if null() { return nil }
    try array(of: 3)
    var account = CodeAccount(method: try CodeMethod(&self), nextPosition: try unsigned())
    if !null() { account.resynchronisingPosition = try unsigned() }
    return account
  }
}

/// The encoding of one of the owner's codes in the journal.
package enum CodeItem {
  package static func decode(_ item: Span<UInt8>) throws(EncodingFault) -> OneUseCodeRecord {
    var reader = CBORReader(item)
    guard try reader.itemKind() == .code else { throw .unexpected }
    let id = try reader.unsigned()
    guard let purpose = OneUseCode.Purpose(rawValue: UInt8(clamping: try reader.unsigned())) else { throw .unexpected }
    let keyBytes = try reader.byteString()
    let user = try reader.name()
    let expires = try reader.unsigned()
    var methods = ByPurpose<CodeMethod>()
    for purpose in CodePurpose.given { methods[purpose] = try reader.optionalMethod() }
    try reader.finish()
    guard let key = Secret<32>(copying: keyBytes) else { throw .unexpected }
    return OneUseCodeRecord(id: id, purpose: purpose, key: key, user: user, expires: expires, methods: methods)
  }

  package static func encode<Sink: ByteSink & ~Copyable>(
    _ code: borrowing OneUseCodeRecord, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.begin(.code)
    try sink.appendCBOR(unsigned: code.id)
    try sink.appendCBOR(unsigned: UInt64(code.purpose.rawValue))
    try code.key.withBytes { (key: Span<UInt8>) throws(Sink.Failure) in try sink.appendCBOR(bytes: key) }
    let user = code.user
    try sink.appendCBOR(text: user.bytes)
    try sink.appendCBOR(unsigned: code.expires)
    for purpose in CodePurpose.given { try sink.appendOptional(code.methods[purpose]) }
  }
}
