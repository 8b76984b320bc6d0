import HoldfastCore
import HoldfastFormats

/// An API domain: a name by which apps reach one of the owner's backends, and the tokens that they get for it.
package struct APIDomain: Sendable, Equatable {
  /// The algorithms that sign the tokens of a domain.
  package enum Algorithm: String, Sendable, CaseIterable {
    /// ECDSA with P-256 and SHA-256, by the key of the app tokens.
    case es256 = "ES256"
    /// HMAC-SHA-256 by a key of the domain, which its backend knows too.
    case hs256 = "HS256"
  }

  /// The largest number of domains.
  package static let countLimit: UInt64 = 64
  /// The lifetimes of tokens, in seconds.
  package static let lifetimes: ClosedRange<UInt64> = 10...86_400

  /// The DNS name.
  package let name: String
  /// The claim `aud` of its tokens.
  package let audience: BoundedText<255>
  package let algorithm: Algorithm
  /// The lifetime of its tokens, in seconds.
  package let lifetime: UInt64
  /// Whether apps need a token for it; otherwise it is only pinned.
  package let isProtected: Bool
  /// Whether attestation tokens for measurement tokens may name it.
  package let hasMeasurement: Bool

  /// Creates a domain.
  package init(
    name: String, audience: BoundedText<255>, algorithm: Algorithm = .es256, lifetime: UInt64 = 300,
    isProtected: Bool = true, hasMeasurement: Bool = false
  ) {
    (self.name, self.audience, self.algorithm, self.lifetime) = (name, audience, algorithm, lifetime)
    (self.isProtected, self.hasMeasurement) = (isProtected, hasMeasurement)
  }

  /// Returns whether a text is a DNS name in lower case: 1 to 253 bytes, in labels of 1 to 63 letters, digits and hyphens, none at
  /// either end of a label.
  ///
  /// Source: RFC 1123 §2.1.
  package static func isName(_ text: String) -> Bool {
    guard (1...253).contains(text.utf8.count) else { return false }
    return text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
      let hyphen = UInt8(ascii: "-")
      return (1...63).contains(label.count) && label.first != hyphen && label.last != hyphen
        && label.allSatisfy { byte in
          (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
            || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || byte == hyphen
        }
    }
  }

  /// The text about the domain in the log of changes.
  var detail: String {
    let words = [
      "audience \(audience)", algorithm.rawValue, "\(lifetime) s", isProtected ? "protected" : "unprotected",
    ]
    return (words + (hasMeasurement ? ["measurement"] : [])).joined(separator: ", ")
  }
}

/// A pin of a domain's public key, or of the keys of every domain.
package struct DomainPin: Sendable, Equatable {
  /// The name that stands for every domain.
  package static let everyDomain = "*"
  /// The largest number of pins of one domain.
  package static let countLimit: UInt64 = 16

  /// The name of the domain, or ``everyDomain``.
  package let domain: String
  /// The pin, as libcurl writes it.
  package let pin: String

  private static let prefix = "sha256//"

  /// Reads a pin: `sha256//` and the padded base64 of SHA-256 over a SubjectPublicKeyInfo. Source: RFC 7469 §2.4.
  package init?(domain: String, pin: String) {
    guard APIDomain.isName(domain) || domain == Self.everyDomain, pin.utf8.starts(with: Self.prefix.utf8),
      Schema.base64Bytes(String(pin.unicodeScalars.dropFirst(Self.prefix.utf8.count)))?.count == 32
    else { return nil }
    (self.domain, self.pin) = (domain, pin)
  }

  /// The key of the record: the domain, a space and the pin.
  var key: String { "\(domain) \(pin)" }
}
