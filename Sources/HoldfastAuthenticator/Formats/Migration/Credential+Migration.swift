import HoldfastCore
import HoldfastOpenSSL

extension Credential {
  /// Reads one export of Google Authenticator: `otpauth-migration://offline?data=…`, all of its parts in any order, one a line.
  ///
  /// Throws which part is missing, there twice, or of another export.
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

  /// The message of one URI.
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
