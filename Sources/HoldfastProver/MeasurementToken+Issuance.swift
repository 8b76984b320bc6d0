import HoldfastCore
import HoldfastFormats

extension MeasurementToken {
  /// The largest answer of a backend, in bytes.
  package static let maximumAnswerByteCount = 65_536
  /// The formats of a token that an answer may name.
  private static let formats: [(name: String, encoding: TokenEncoding)] = [
    ("cose", .cose), ("jose", .jose), ("jose-a256kw", .jose),
  ]

  /// Reads what a backend sent: either the token itself, or the whole answer of an online service to `POST /v1/tokens`, which also
  /// has the issuer's terms and its report.
  ///
  /// An answer is a JSON object with the members `token` (padded base64) and, optionally, `format` (`cose`, `jose` or
  /// `jose-a256kw`), `claims` (an object) and `terms` (a compact JWS). A token never begins with `{`.
  ///
  /// - Parameter bytes: the bytes, at most 65,536. Only the device can read the token in them.
  /// - Throws: ``StateFolderFault/notAToken`` for an answer that has other members, or members of another form. The terms, and the
  ///   form of a token that came by itself, are checked when the token is stored.
  public init(answer bytes: [UInt8]) throws(StateFolderFault) {
    let blanks: [UInt8] = [0x20, 0x09, 0x0a, 0x0d]
    guard bytes.first(where: { !blanks.contains($0) }) == UInt8(ascii: "{") else {
      self.init(bytes)
      return
    }
    guard let value = try? JSONValue(parsing: bytes, byteLimit: Self.maximumAnswerByteCount),
      value.hasOnly(["token", "format", "claims", "terms"]), let text = value["token"]?.text,
      let token = try? decodePublicPaddedBase64(text)
    else { throw .notAToken }
    let report = value["claims"].flatMap { IssuanceReport($0) }
    let terms = value["terms"]?.text
    guard (value["claims"] == nil) == (report == nil), (value["terms"] == nil) == (terms == nil) else {
      throw .notAToken
    }
    self.init(token, report: report, terms: terms.map { Array($0.utf8) })
    guard let format = value["format"] else { return }
    guard let known = Self.formats.first(where: { $0.name == format.text }), known.encoding == encoding else {
      throw .notAToken
    }
  }
}
