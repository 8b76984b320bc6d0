import HoldfastCore
import HoldfastOpenSSL

extension Credential {
  /// Reads `otpauth://` URIs, one a line.
  static func readURIs(_ bytes: Span<UInt8>, user: String?) throws(ImportFault) -> [Credential] {
    let lines = try uriLines(bytes, maximumCount: maximumAccountCount)
    guard user == nil || lines.count <= 1 else { throw .severalAccounts }
    var credentials: [Credential] = []
    for line in lines { credentials.append(try readURI(bytes.extracting(line), user: user)) }
    return credentials
  }

  /// Reads `otpauth://totp/Issuer:user?secret=…` or `otpauth://hotp/…&counter=…`.
  ///
  /// Source: Google's Key URI format. `algorithm` is SHA1 unless said, `digits` 6 and `period` 30; other parameters are passed
  /// over; the issuer parameter goes before the label's.
  private static func readURI(_ uri: Span<UInt8>, user: String?) throws(ImportFault) -> Credential {
    let kind: CodeKind
    var start: Int
    if uri.starts(with: "otpauth://totp/") {
      kind = .totp
      start = 15
    } else if uri.starts(with: "otpauth://hotp/") {
      kind = .hotp
      start = 15
    } else {
      throw uri.starts(with: "otpauth://") ? .unsupportedAlgorithm : .malformed
    }
    let labelStart = start
    while start < uri.count, uri[start] != 0x3f { start += 1 }
    guard start < uri.count else { throw .invalidSecret }
    let label = try AccountLabel(try percentDecodedText(uri.extracting(labelStart..<start)))
    let queryBytes = uri.extracting(start + 1..<uri.count)
    let query = try URIQuery(queryBytes)
    guard let secretPlace = query["secret"] else { throw .invalidSecret }
    let secret = try base32Secret(queryBytes.extracting(secretPlace))

    var issuer = label.issuer ?? ""
    if let place = query["issuer"] { issuer = try percentDecodedText(queryBytes.extracting(place)) }
    var hash = OATHHash.sha1
    if let place = query["algorithm"] {
      guard let named = OATHHash(keyURI: try percentDecodedText(queryBytes.extracting(place))) else {
        throw .unsupportedAlgorithm
      }
      hash = named
    }
    var length = CodeLength.six
    if let place = query["digits"] {
      guard let digits = UInt64(decimal: queryBytes.extracting(place)), let given = CodeLength(Int(digits)) else {
        throw .invalidDigits
      }
      length = given
    }
    switch kind {
    case .hotp:
      guard let place = query["counter"], let counter = UInt64(decimal: queryBytes.extracting(place)) else {
        throw .invalidCounter
      }
      return try checked(
        issuer: issuer, user: user ?? label.user, method: .hotp(hash, length), nextCounter: counter, secret: secret)
    case .totp:
      var periodSeconds: UInt64 = 30
      if let place = query["period"] {
        guard let given = UInt64(decimal: queryBytes.extracting(place)),
          (1...CodeMethod.maximumPeriodSeconds).contains(given)
        else { throw .invalidPeriod }
        periodSeconds = given
      }
      return try checked(
        issuer: issuer, user: user ?? label.user, method: .totp(hash, length, periodSeconds: periodSeconds),
        nextCounter: 0, secret: secret)
    }
  }

  private enum CodeKind { case hotp, totp }

  /// The secret of a parameter: base32, with or without padding, which may be percent-encoded.
  private static func base32Secret(_ text: Span<UInt8>) throws(ImportFault) -> SecretBytes {
    let decoded = try percentDecoded(text)
    do {
      return try Base32.decode(decoded.bytes)
    } catch {
      throw .invalidSecret
    }
  }
}

extension OATHHash {
  /// The hash that a Key URI names, in either case.
  init?(keyURI name: String) {
    switch name.uppercased() {
    case "SHA1": self = .sha1
    case "SHA256": self = .sha256
    case "SHA512": self = .sha512
    default: return nil
    }
  }

  /// How a Key URI names the hash.
  var keyURIName: StaticString {
    switch self {
    case .sha1: "SHA1"
    case .sha256: "SHA256"
    case .sha512: "SHA512"
    }
  }
}
