import HoldfastCore

/// One of the owner's codes as the journal has it.
enum CodeItem {
  static func decode(_ item: Span<UInt8>) throws(EncodingFault) -> OneUseCodeRecord {
    var reader = CBORReader(item)
    guard try reader.itemKind() == .code else { throw .unexpected }
    let id = try reader.unsigned()
    guard let purpose = OneUseCode.Purpose(rawValue: UInt8(clamping: try reader.unsigned())) else { throw .unexpected }
    let keyBytes = try reader.byteString()
    let user = try reader.name()
    let expires = try reader.unsigned()
    let otp = try reader.optionalMethod()
    let seal = try reader.optionalMethod()
    try reader.finish()
    guard let key = Secret<32>(copying: keyBytes) else { throw .unexpected }
    return OneUseCodeRecord(id: id, purpose: purpose, key: key, user: user, expires: expires, otp: otp, seal: seal)
  }

  static func encode<Sink: ByteSink & ~Copyable>(
    _ code: borrowing OneUseCodeRecord, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.begin(.code, elementCount: 8)
    try sink.appendCBOR(unsigned: code.id)
    try sink.appendCBOR(unsigned: UInt64(code.purpose.rawValue))
    try code.key.withBytes { (key: Span<UInt8>) throws(Sink.Failure) in try sink.appendCBOR(bytes: key) }
    let user = code.user
    try sink.appendCBOR(text: user.bytes)
    try sink.appendCBOR(unsigned: code.expires)
    try sink.appendOptional(code.otp)
    try sink.appendOptional(code.seal)
  }
}
