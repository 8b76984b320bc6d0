import HoldfastCore

/// The address of an online service: `https://host`, with a port if necessary. `http://` is only for this host itself.
///
/// Source: RFC 3986 §3.2, RFC 9110 §4.2. It has no path, query or user, and its host is in ASCII.
package struct ServiceAddress: Sendable, Equatable, CustomStringConvertible {
  /// The address with scheme and host in lower case, without a default port and without a slash at its end.
  package let description: String
  /// Whether messages travel encrypted.
  package var isEncrypted: Bool { description.hasPrefix("https:") }

  /// The maximum number of services in a list.
  package static let countLimit = 8
  /// The maximum byte count of an address.
  package static let maximumByteCount = 300
  private static let loopbackHosts = ["127.0.0.1", "[::1]", "localhost"]

  /// Parses an address.
  ///
  /// - Throws: ``ServiceAddressFault``.
  package init(_ text: String) throws(ServiceAddressFault) {
    let bytes = Array(text.utf8)
    guard bytes.count <= Self.maximumByteCount, let separator = Self.schemeEnd(of: bytes) else { throw .malformed }
    let scheme = lowercased(bytes[..<separator])
    guard scheme == "https" || scheme == "http" else { throw .scheme }
    let isEncrypted = scheme == "https"
    var authority = bytes[(separator + 3)...]
    if authority.last == UInt8(ascii: "/") { authority.removeLast() }
    guard authority.allSatisfy({ !Self.endsAuthority($0) }) else { throw .extraParts }
    let (host, rest) = try Self.host(authority)
    let port = try Self.port(rest)
    guard isEncrypted || Self.loopbackHosts.contains(host) else { throw .notEncrypted }
    let isDefault = port == nil || port == (isEncrypted ? 443 : 80)
    description = "\(scheme)://\(host)" + (isDefault ? "" : ":\(port ?? 0)")
  }

  /// Parses one to ``countLimit`` different addresses with commas between them, in the order in which they are tried.
  ///
  /// - Throws: ``ServiceAddressFault``.
  package static func list(_ text: String) throws(ServiceAddressFault) -> [ServiceAddress] {
    let parts = Array(text.utf8)[...].split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
    guard parts.count <= countLimit else { throw .tooMany }
    var addresses: [ServiceAddress] = []
    for part in parts {
      let address = try ServiceAddress(String(decoding: part, as: UTF8.self))
      guard !addresses.contains(address) else { throw .repeated(address) }
      addresses.append(address)
    }
    return addresses
  }

  /// Returns whether a text has a scheme and can therefore not be meant as the name of a folder.
  package static func hasScheme(_ text: String) -> Bool { schemeEnd(of: Array(text.utf8)) != nil }

  private static func schemeEnd(of bytes: [UInt8]) -> Int? {
    bytes.indices.dropLast(2).first {
      bytes[$0] == UInt8(ascii: ":") && bytes[$0 + 1] == UInt8(ascii: "/") && bytes[$0 + 2] == UInt8(ascii: "/")
    }
  }

  /// Returns the host in lower case, and the bytes after it.
  private static func host(_ authority: ArraySlice<UInt8>) throws(ServiceAddressFault) -> (String, ArraySlice<UInt8>) {
    let end: Int
    if authority.first == UInt8(ascii: "[") {
      guard let bracket = authority.firstIndex(of: UInt8(ascii: "]")) else { throw .malformed }
      end = bracket + 1
      let digits = authority[(authority.startIndex + 1)..<bracket]
      guard digits.contains(UInt8(ascii: ":")),
        digits.allSatisfy({ hexadecimalValue($0) != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
      else { throw .malformed }
    } else {
      end = authority.firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
      let name = authority[..<end]
      guard (1...253).contains(name.count), name.allSatisfy(isHostCharacter) else { throw .malformed }
    }
    return (lowercased(authority[..<end]), authority[end...])
  }

  private static func port(_ rest: ArraySlice<UInt8>) throws(ServiceAddressFault) -> Int? {
    guard let colon = rest.first else { return nil }
    let digits = rest.dropFirst()
    guard colon == UInt8(ascii: ":"), (1...5).contains(digits.count) else { throw .malformed }
    var port = 0
    for digit in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { throw .malformed }
      port = port * 10 + Int(digit - UInt8(ascii: "0"))
    }
    guard (1...65_535).contains(port) else { throw .malformed }
    return port
  }

  /// Whether a character ends the authority, or separates a user from the host.
  private static func endsAuthority(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "@"), UInt8(ascii: "\\"): true
    default: false
    }
  }

  private static func isHostCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
    default: false
    }
  }
}

/// The reasons why a text is not a list of services.
package enum ServiceAddressFault: Error, Equatable {
  /// The text is not a URL with a host.
  case malformed
  /// The scheme is neither `https` nor `http`.
  case scheme
  /// The scheme is `http`, and the host is not this one.
  case notEncrypted
  /// The URL has a user, a path, a query or a fragment.
  case extraParts
  /// There are more than ``ServiceAddress/countLimit`` services.
  case tooMany
  /// A service is named twice.
  case repeated(ServiceAddress)
}

private func lowercased(_ bytes: ArraySlice<UInt8>) -> String {
  String(decoding: bytes.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
}
