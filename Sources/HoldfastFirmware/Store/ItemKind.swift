import HoldfastCore

/// What a transaction is made of: CBOR arrays, one behind the other, that begin with one of these.
enum ItemKind: UInt64 {
  /// `[1, clock floor, boot count, next user id, next code id]`
  case state = 1
  /// `[2, count, head]`: the audit chain before the first entry of the slot.
  case auditBase = 2
  /// `[3, entry]`: see ``AuditEntry``.
  case auditEntry = 3
  /// `[4, kid, floor]`
  case generation = 4
  /// `[5, kid / null, jti, expires, count]`: the uses of a token.
  case uses = 5
  /// `[6, kid / null, jti, expires, nonce]`: a compatibility nonce.
  case nonce = 6
  /// `[7, id, name, …]`: see ``UserItem``.
  case user = 7
  /// `[8, user id, purpose, secret]`
  case secret = 8
  /// `[9, id]`: a user is gone, secrets too.
  case userGone = 9
  /// `[10, id, purpose, key, user, expires, otp / null, seal / null]`: one of the owner's codes.
  case code = 10
  /// `[11, id]`: a code is gone.
  case codeGone = 11
  /// `[12, jti, place, …]`: see ``RequestItem``.
  case request = 12
  /// `[13, place, outcome]`: what came of the request with the highest number at that place.
  case outcome = 13
}

/// The most elements of an item, or of an array in one.
private let longestItem = 11

extension ByteSink where Self: ~Copyable {
  /// Begins an item of so many elements, the kind among them.
  mutating func begin(_ kind: ItemKind, elementCount: Int) throws(Failure) {
    try appendCBOR(array: elementCount)
    try appendCBOR(unsigned: kind.rawValue)
  }

  mutating func appendOptional(_ keyID: KeyID?) throws(Failure) {
    guard let keyID else { return try appendCBORNull() }
    try appendCBOR(bytes: keyID.bytes)
  }

  mutating func appendOptional(_ method: CodeMethod?) throws(Failure) {
    guard let method else { return try appendCBORNull() }
    try method.encode(into: &self)
  }
}

extension CBORReader {
  mutating func itemKind() throws(EncodingFault) -> ItemKind {
    _ = try arrayHead()
    guard let kind = ItemKind(rawValue: try unsigned()) else { throw .unexpected }
    return kind
  }

  /// Reads over one item, whatever it is.
  @inline(never)
  mutating func skip() throws(EncodingFault) {
    var pending = 1
    while pending > 0 {
      pending -= 1
      switch try nextMajorType() {
      case .unsigned, .negative: _ = try integer()
      case .bytes: _ = try byteString()
      case .text: _ = try textString()
      case .array:
        let count = try arrayHead()
        guard count <= longestItem else { throw .unexpected }
        pending += count
      case .map, .tag: throw .unexpected
      case .simple: guard null() else { throw .unexpected }
      }
    }
  }

  mutating func optionalKeyID() throws(EncodingFault) -> KeyID? {
    if null() { return nil }
    let keyID: KeyID = try fixedBytes()
    return keyID
  }

  mutating func optionalMethod() throws(EncodingFault) -> CodeMethod? {
    if null() { return nil }
    return try CodeMethod(&self)
  }

  mutating func name() throws(EncodingFault) -> BoundedText<32> {
    guard let name = BoundedText<32>(try textString()) else { throw .unexpected }
    return name
  }
}
