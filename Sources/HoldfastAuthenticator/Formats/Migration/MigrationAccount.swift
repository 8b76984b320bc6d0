import HoldfastCore
import HoldfastOpenSSL

/// One account of an export, as it is written.
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

  /// `malformed` for a field that is there twice or of another type.
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

  /// The account of the same `message`; `user` goes before the name in it.
  func credential(of message: Span<UInt8>, user: String?) throws(ImportFault) -> Credential {
    guard let isCounted else { throw .unsupportedAlgorithm }
    let label = try label()
    let secret = SecretBytes(copying: message.extracting(secret))
    return try .checked(
      issuer: label.issuer ?? "", user: user ?? label.user,
      method: isCounted ? .hotp(hash, length) : .totp(hash, length, periodSeconds: 30),
      nextCounter: isCounted ? counter ?? 0 : 0, secret: secret)
  }

  /// The names: the issuer of its own field, without its repetition before the user.
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
