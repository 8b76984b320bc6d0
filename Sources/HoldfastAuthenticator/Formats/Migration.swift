import HoldfastCore
import HoldfastOpenSSL

extension Credential {
  /// Reads one export of Google Authenticator: `otpauth-migration://offline?data=…`, all parts in any order, one per
  /// line.
  ///
  /// - Throws: `missingPart`, `repeatedPart` or `foreignPart`, with the number of the part or line.
  static func readMigration(_ bytes: Span<UInt8>, user: String?) throws(ImportFault) -> [Credential] {
    let lines = try uriLines(bytes, maximumCount: 100)
    guard !lines.isEmpty else { throw .noAccount }
    var parts: [Int: [Credential]] = [:]
    var first: MigrationPart?
    for (offset, line) in lines.enumerated() {
      let payload = try migrationPayload(bytes.extracting(line))
      let part = try MigrationPart(payload.bytes)
      let whole = first ?? part
      guard part.exportID == whole.exportID, part.count == whole.count else { throw .foreignPart(line: offset + 1) }
      first = whole
      guard parts[part.index] == nil else { throw .repeatedPart(number: part.index + 1) }
      var credentials: [Credential] = []
      for place in part.accounts {
        let message = payload.bytes.extracting(place)
        let account = try MigrationAccount(message)
        credentials.append(try account.credential(of: message, user: user))
      }
      parts[part.index] = credentials
    }
    let count = first?.count ?? 1
    for index in 0..<count where parts[index] == nil { throw .missingPart(number: index + 1, count: count) }
    return (0..<count).flatMap { parts[$0] ?? [] }
  }

  /// Decodes the message in one URI.
  private static func migrationPayload(_ uri: Span<UInt8>) throws(ImportFault) -> SecretBytes {
    guard uri.starts(with: "otpauth-migration://offline?") else { throw .malformed }
    let queryBytes = uri.extracting(28..<uri.count)
    let query = try URIQuery(queryBytes)
    guard let place = query["data"] else { throw .malformed }
    let text = try percentDecoded(queryBytes.extracting(place))
    do {
      return try SecretBytes(paddedBase64: text.bytes)
    } catch {
      throw .malformed
    }
  }
}

/// One account of an export.
///
/// Source: `OtpParameters` of Google Authenticator's `MigrationPayload`.
struct MigrationAccount: ~Copyable {
  private var secret: Range<Int> = 0..<0
  private var name = ""
  private var issuer = ""
  private var hash = OATHHash.sha1
  private var length = CodeLength.six
  private var isCounted: Bool?
  private var counter: UInt64?

  /// Reads an account.
  ///
  /// - Throws: `malformed` for a field that occurs twice or has another type.
  init(_ message: Span<UInt8>) throws(ImportFault) {
    var reader = ProtobufReader(message)
    var seen: Set<UInt64> = []
    while let field = try reader.next() {
      guard (1...7).contains(field.number) else { continue }
      guard seen.insert(field.number).inserted else { throw .malformed }
      switch (field.number, field.value) {
      case (1, .bytes(let place)): secret = place
      case (2, .bytes(let place)): name = try String(checking: message.extracting(place))
      case (3, .bytes(let place)): issuer = try String(checking: message.extracting(place))
      case (4, .varint(let value)): hash = try Self.hash(value)
      case (5, .varint(let value)): length = try Self.length(value)
      case (6, .varint(let value)):
        guard value == 1 || value == 2 else { throw .unsupportedAlgorithm }
        isCounted = value == 1
      case (7, .varint(let value)):
        guard value <= Credential.maximumCounter else { throw .invalidCounter }
        counter = value
      default: throw .malformed
      }
    }
  }

  /// Makes the credential of the account, which was read from the same `message`. `user` takes precedence over the name
  /// in it.
  func credential(of message: Span<UInt8>, user: String?) throws(ImportFault) -> Credential {
    guard let isCounted else { throw .unsupportedAlgorithm }
    let label = try label()
    let secret = SecretBytes(copying: message.extracting(secret))
    return try .checked(
      issuer: label.issuer ?? "", user: user ?? label.user,
      method: isCounted ? .hotp(hash, length) : .totp(hash, length, periodSeconds: 30),
      nextCounter: isCounted ? counter ?? 0 : 0, secret: secret)
  }

  /// Returns the issuer and the user. If the issuer has a separate field, its repetition before the user's name is
  /// removed.
  private func label() throws(ImportFault) -> (issuer: String?, user: String) {
    if issuer.isEmpty {
      let label = try AccountLabel(name)
      return (label.issuer, label.user)
    }
    guard name.hasPrefix(issuer + ":") else { return (issuer, name) }
    return (issuer, String(name.dropFirst(issuer.count + 1).drop { $0 == " " }))
  }

  private static func hash(_ value: UInt64) throws(ImportFault) -> OATHHash {
    switch value {
    case 0, 1: .sha1
    case 2: .sha256
    case 3: .sha512
    default: throw .unsupportedAlgorithm
    }
  }

  private static func length(_ value: UInt64) throws(ImportFault) -> CodeLength {
    switch value {
    case 0, 1: .six
    case 2: .eight
    default: throw .invalidDigits
    }
  }
}

/// One URI of an export: some of its accounts, with the export's identifier and the position of this part in it.
///
/// Source: the `MigrationPayload` of Google Authenticator's `otpauth-migration://offline?data=…`.
struct MigrationPart {
  /// The ranges of the accounts in the payload.
  private(set) var accounts: [Range<Int>] = []
  /// The position of this part, counted from 0.
  private(set) var index = 0
  /// The number of parts, 1 to 100.
  private(set) var count = 1
  private(set) var exportID: UInt64 = 0

  /// Reads a part.
  ///
  /// - Throws: `malformed` for a field that occurs twice, has another type, or is out of range.
  init(_ payload: Span<UInt8>) throws(ImportFault) {
    var reader = ProtobufReader(payload)
    var seen: Set<UInt64> = []
    while let field = try reader.next() {
      if case (1, .bytes(let place)) = (field.number, field.value) {
        guard accounts.count < Credential.maximumAccountCount else { throw .tooLarge }
        accounts.append(place)
        continue
      }
      guard (1...5).contains(field.number) else { continue }
      guard case .varint(let value) = field.value, seen.insert(field.number).inserted else { throw .malformed }
      switch field.number {
      case 3:
        guard value <= 100 else { throw .malformed }
        count = max(Int(value), 1)
      case 4:
        guard value < 100 else { throw .malformed }
        index = Int(value)
      case 5: exportID = value
      case 1: throw .malformed
      default: break
      }
    }
    guard index < count else { throw .malformed }
  }
}

/// A reader of one Protocol Buffers message, field by field, from untrusted bytes.
///
/// Source: protobuf.dev, "Encoding". It throws `malformed` for a truncated field, a number of more than 64 bits, a
/// field number of 0 or above 2^29 - 1, and for groups, which no exporter writes.
struct ProtobufReader: ~Escapable {
  private let bytes: Span<UInt8>
  private var position = 0

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
  }

  /// One field of a message.
  struct Field {
    let number: UInt64
    let value: Value
  }

  enum Value {
    case varint(UInt64)
    /// The range of the bytes of a text, byte string or message.
    case bytes(Range<Int>)
    /// A value of 4 or 8 bytes, which the reader skips.
    case fixed
  }

  /// Reads the next field; returns nil at the end.
  mutating func next() throws(ImportFault) -> Field? {
    guard position < bytes.count else { return nil }
    let key = try varint()
    let number = key >> 3
    guard (1..<1 << 29).contains(number) else { throw .malformed }
    switch key & 7 {
    case 0: return Field(number: number, value: .varint(try varint()))
    case 1: return try skip(8, number)
    case 2:
      let count = try varint()
      guard count <= UInt64(bytes.count - position) else { throw .malformed }
      let start = position
      position += Int(count)
      return Field(number: number, value: .bytes(start..<position))
    case 5: return try skip(4, number)
    default: throw .malformed
    }
  }

  private mutating func skip(_ count: Int, _ number: UInt64) throws(ImportFault) -> Field {
    guard count <= bytes.count - position else { throw .malformed }
    position += count
    return Field(number: number, value: .fixed)
  }

  private mutating func varint() throws(ImportFault) -> UInt64 {
    var value: UInt64 = 0
    for index in 0..<10 {
      guard position < bytes.count else { throw .malformed }
      let byte = bytes[position]
      position += 1
      guard index < 9 || byte <= 1 else { throw .malformed }
      value |= UInt64(byte & 0x7f) << UInt64(7 * index)
      if byte < 0x80 { return value }
    }
    throw .malformed
  }
}
