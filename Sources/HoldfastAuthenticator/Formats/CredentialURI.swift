import HoldfastCore
import HoldfastOpenSSL

extension Credential {
  /// Reads `otpauth://` URIs, one per line.
  static func readURIs(_ bytes: Span<UInt8>, user: String?) throws(ImportFault) -> [Credential] {
    let lines = try uriLines(bytes, maximumCount: maximumAccountCount)
    var credentials: [Credential] = []
    for line in lines { credentials.append(try readURI(bytes.extracting(line), user: user)) }
    return credentials
  }

  /// Reads `otpauth://totp/Issuer:user?secret=…` or `otpauth://hotp/…&counter=…`.
  ///
  /// Source: Google's Key URI format. The defaults are SHA1 for `algorithm`, 6 for `digits` and 30 for `period`.
  /// Unknown parameters are ignored. The issuer parameter takes precedence over the issuer in the label.
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

  /// Decodes the secret in a parameter: base32 with or without padding, which may be percent-encoded.
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
  /// Creates the hash that a Key URI names, in either case.
  init?(keyURI name: String) {
    switch name.uppercased() {
    case "SHA1": self = .sha1
    case "SHA256": self = .sha256
    case "SHA512": self = .sha512
    default: return nil
    }
  }

  /// The name of the hash in a Key URI.
  var keyURIName: StaticString {
    switch self {
    case .sha1: "SHA1"
    case .sha256: "SHA256"
    case .sha512: "SHA512"
    }
  }
}

/// The reasons why a credential cannot be written as a URI.
package enum ExportFault: Error, Equatable, Sendable {
  /// The format does not support OCRA.
  case unsupportedMethod
  /// The user or issuer has a colon, or the user begins with a space, so a reader would see another name.
  case ambiguousName
}

extension Credential {
  /// Writes the credential as `otpauth://totp/…` or `otpauth://hotp/…`. The URI contains the secret in base32.
  ///
  /// Source: Google's Key URI format. Every parameter is written, so that no reader's defaults matter.
  package func otpauthURI() throws(ExportFault) -> SecretBytes {
    guard !user.contains(":"), !issuer.contains(":"), !user.hasPrefix(" ") else { throw .ambiguousName }
    var uri = SecretBuffer(capacity: 512)
    let hash: OATHHash
    let length: CodeLength
    switch method {
    case .hotp(let givenHash, let givenLength):
      uri.append("otpauth://hotp/")
      (hash, length) = (givenHash, givenLength)
    case .totp(let givenHash, let givenLength, _):
      uri.append("otpauth://totp/")
      (hash, length) = (givenHash, givenLength)
    case .ocra: throw .unsupportedMethod
    }
    if !issuer.isEmpty {
      uri.append(percentEncoding: issuer)
      uri.append(":")
    }
    uri.append(percentEncoding: user)
    uri.append("?secret=")
    appendSecret(to: &uri)
    if !issuer.isEmpty {
      uri.append("&issuer=")
      uri.append(percentEncoding: issuer)
    }
    uri.append("&algorithm=")
    uri.append(hash.keyURIName)
    uri.append("&digits=")
    uri.append(decimal: UInt64(length.digits))
    if case .totp(_, _, let periodSeconds) = method {
      uri.append("&period=")
      uri.append(decimal: periodSeconds)
    } else {
      uri.append("&counter=")
      uri.append(decimal: nextCounter)
    }
    return SecretBytes(copying: uri.bytes)
  }

  /// Writes the secret in base32 without padding, as the format requires.
  private func appendSecret(to uri: inout SecretBuffer) {
    var text = secret.withBytes { Base32.encode($0) }
    uri.append(text.span)
    var bytes = text.mutableSpan
    wipe(&bytes)
  }
}

/// Returns the ranges of the lines in a file of URIs, without empty lines and without white space at both ends.
///
/// - Throws: `tooLarge` if there are more than `maximumCount` lines.
func uriLines(_ bytes: Span<UInt8>, maximumCount: Int) throws(ImportFault) -> [Range<Int>] {
  var lines: [Range<Int>] = []
  var start = bytes.starts(with: "\u{FEFF}") ? 3 : 0
  while start < bytes.count {
    var end = start
    while end < bytes.count, bytes[end] != 0x0a { end += 1 }
    let next = end + 1
    while start < end, isWhitespace(bytes[start]) { start += 1 }
    while start < end, isWhitespace(bytes[end - 1]) { end -= 1 }
    if start < end {
      guard lines.count < maximumCount else { throw .tooLarge }
      lines.append(start..<end)
    }
    start = next
  }
  return lines
}

/// The parameters of a URI's query, indexed by name. Each name occurs once.
///
/// The query has the form `name=value&name=value`. The values are ranges in the query, because one of them is secret.
struct URIQuery {
  private var values: [String: Range<Int>] = [:]

  /// Reads the query.
  ///
  /// - Throws: `malformed` for a part without `=` or without a name, `repeatedParameter` for any name that occurs
  ///   twice, known or not.
  init(_ query: Span<UInt8>) throws(ImportFault) {
    var start = 0
    while start <= query.count {
      var end = start
      while end < query.count, query[end] != 0x26 { end += 1 }
      var equals = start
      while equals < end, query[equals] != 0x3d { equals += 1 }
      guard equals < end, equals > start else { throw .malformed }
      let name = try percentDecodedText(query.extracting(start..<equals))
      guard values.updateValue(equals + 1..<end, forKey: name) == nil else { throw .repeatedParameter }
      start = end + 1
    }
  }

  /// The range of the value of `name`; nil if the parameter is absent.
  subscript(name: String) -> Range<Int>? { values[name] }
}

/// The issuer and user in a label: `Issuer:user`, with optional spaces after the colon, or only the user.
///
/// Source: Google's Key URI format, "Label". More than one colon is `invalidName`.
struct AccountLabel {
  /// The issuer; nil if the label has no colon.
  let issuer: String?
  let user: String

  init(_ label: String) throws(ImportFault) {
    let parts = label.split(separator: ":", omittingEmptySubsequences: false)
    switch parts.count {
    case 1:
      issuer = nil
      user = label
    case 2:
      issuer = String(parts[0])
      user = String(parts[1].drop { $0 == " " })
    default: throw .invalidName
    }
  }
}
