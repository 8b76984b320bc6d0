import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

import HoldfastIssuer

/// A token that another implementation made, and its key.
struct PeerToken {
  let value: JSONValue

  static func encrypted() throws -> [PeerToken] { try all("encrypted") }
  static func signed() throws -> [PeerToken] { try all("signed") }

  private static func all(_ name: String) throws -> [PeerToken] {
    let root = try fixture("HoldfastIssuerTests/Fixtures/jose.json")
    return (root[name]?.elements ?? []).map { PeerToken(value: $0) }
  }

  private func text(_ name: String) -> String { value[name]?.text ?? "" }

  var name: String { "\(text("maker")) \(text("plaintext"))" }
  var algorithm: String { text("alg") }
  var encryption: String { text("enc") }
  var plaintext: String { text("plaintext") }
  var token: String { text("token") }

  func key() throws -> JWEKey {
    let json = (value["key"] ?? .null).compact()
    return try JWEKey(parsing: json.span)
  }

  func open() throws -> String { try opening(Array(token.utf8)) }

  /// Opens another token with this one's key.
  func opening(_ token: [UInt8]) throws -> String {
    var key = try key()
    let plain = try key.open(token.span, contentType: "JWT")
    return plain.bytes.text
  }

  func header() throws -> JSONValue {
    let first = Array(token.split(separator: ".")[0].utf8)
    let bytes = try decodeBase64URL(first.span)
    return try JSONValue(parsing: bytes.bytes, byteLimit: 2000)
  }

  /// The token with one header parameter set.
  func withHeader(_ name: String, _ value: JSONValue) throws -> [UInt8] {
    let members = (try header().members ?? []).filter { $0.0 != name }
    return withEncodedHeader(JSONValue.object(members + [(name, value)]).compact())
  }

  /// The token with another header.
  func withEncodedHeader(_ header: [UInt8]) -> [UInt8] {
    let rest = token.drop { $0 != "." }
    return Array(base64URL(header.span).utf8) + Array(rest.utf8)
  }
}
