import HoldfastCore
import HoldfastFormats
import HoldfastOnline

/// A configuration that the account's service signed: its services, API domains, pins and features.
///
/// Members that the library does not know are ignored, because the signature shows that the service means them.
package struct AccountConfiguration: Sendable {
  /// The text, a compact JWS.
  let text: String
  /// The revision, which only rises.
  let revision: UInt64
  /// The services to ask from now on; none if those of the initial configuration remain.
  let services: [ServiceAddress]
  /// The pins of each API domain, and of `*` for those that have none, by the names in the order of the configuration.
  package let pins: [(domain: String, pins: [ServicePin])]
  /// The revision from which pins have to be applied; 0 for none.
  let forcedPins: UInt64
  /// Whether the account lets apps have texts, custom tokens and a key for messages.
  let hasSecureStrings, hasCustomTokens, hasMessageSigning: Bool

  /// The maximum byte count of the text.
  static let byteLimit = ServiceOperation.configuration.answerByteLimit
  private static let type = "holdfast-configuration+jwt"
  private static let pinLimit = 16
  private static let domainLimit = 10_000

  /// Verifies and parses the text; nil unless the account's key signed it.
  package init?(_ text: String, of account: InitialConfiguration) {
    guard let token = CompactJWT(text, byteLimit: Self.byteLimit),
      token.isSigned(by: account.key, named: account.keyID, type: Self.type)
    else { return nil }
    let claims = token.claims
    guard claims["iss"]?.text != nil, claims["iat"]?.number != nil, let revision = claims["revision"]?.number,
      let forced = claims["force_pins"]?.number, let domains = claims["domains"]?.members,
      domains.count <= Self.domainLimit, let pinned = claims["pins"]?.members, let features = claims["features"],
      let strings = features["secure_strings"]?.flag, let custom = features["custom_tokens"]?.flag,
      let messages = features["message_signing"]?.flag, let services = Self.services(claims["services"])
    else { return nil }
    var names: Set<String> = ["*"]
    for (name, domain) in domains {
      guard APIDomain(name)?.name == name, domain["protected"]?.flag != nil, domain["measurement"]?.flag != nil,
        names.insert(name).inserted
      else { return nil }
    }
    var pins: [(domain: String, pins: [ServicePin])] = []
    for (name, list) in pinned {
      guard names.remove(name) != nil, let texts = list.elements, texts.count <= Self.pinLimit else { return nil }
      let parsed = texts.compactMap { $0.text.flatMap { ServicePin($0) } }
      guard parsed.count == texts.count else { return nil }
      if !parsed.isEmpty { pins.append((name, parsed)) }
    }
    (self.text, self.revision, self.services, self.pins) = (text, revision, services, pins)
    (forcedPins, hasSecureStrings, hasCustomTokens, hasMessageSigning) = (forced, strings, custom, messages)
  }

  private static func services(_ value: JSONValue?) -> [ServiceAddress]? {
    guard let texts = value?.elements, texts.count <= ServiceAddress.countLimit else { return nil }
    var services: [ServiceAddress] = []
    for text in texts {
      guard let text = text.text, let address = try? ServiceAddress(text), !services.contains(address) else {
        return nil
      }
      services.append(address)
    }
    return services
  }
}

/// The name of an API domain, as its service knows it.
struct APIDomain: Sendable, Equatable {
  /// The name in lower case.
  let name: String

  /// Reads a name of 1 to 253 letters, digits, hyphens and dots, or an `https` URL with such a host and nothing that could be
  /// meant for another host; nil for anything else.
  init?(_ text: String) {
    var bytes = Array(text.utf8)[...]
    let scheme = Array("https://".utf8)
    if bytes.count >= scheme.count, bytes.prefix(scheme.count).map(Self.lowercased) == scheme {
      bytes = bytes.dropFirst(scheme.count)
      guard !bytes.contains(UInt8(ascii: "@")), !bytes.contains(UInt8(ascii: "\\")) else { return nil }
      bytes = bytes.prefix { !"/?#:".utf8.contains($0) }
    }
    let lower = bytes.map(Self.lowercased)
    guard (1...253).contains(lower.count) else { return nil }
    for label in lower.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
      guard (1...63).contains(label.count), label.first != UInt8(ascii: "-"), label.last != UInt8(ascii: "-"),
        label.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x7a).contains($0) || $0 == UInt8(ascii: "-") })
      else { return nil }
    }
    name = String(decoding: lower, as: UTF8.self)
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }
}
