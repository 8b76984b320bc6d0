import HoldfastCore

/// The names and values of a form, or of a query.
///
/// Source: application/x-www-form-urlencoded in the URL Standard §5.1.
package struct FormData: Sendable {
  /// The names with their values, in their order.
  package let pairs: [(name: String, value: String)]

  /// The largest number of pairs.
  private static let countLimit = 256

  /// Parses a text; nil if an escape is broken, the result is no UTF-8, or there are too many pairs.
  package init?(_ text: String) {
    var pairs: [(String, String)] = []
    for part in text.split(separator: "&") {
      let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pairs.count < Self.countLimit,
        let name = Self.decoded(halves[0], plus: " "),
        let value = Self.decoded(halves.count > 1 ? halves[1] : "", plus: " ")
      else { return nil }
      pairs.append((name, value))
    }
    self.pairs = pairs
  }

  /// The values with a name, in their order.
  package func values(_ name: String) -> [String] { pairs.filter { $0.name == name }.map(\.value) }

  /// The only value with a name; nil if there is none, or several.
  package subscript(name: String) -> String? {
    let values = values(name)
    return values.count == 1 ? values[0] : nil
  }

  /// Decodes percent-encoding; nil if an escape is broken, or the result is no UTF-8.
  ///
  /// Source: RFC 3986 §2.1.
  ///
  /// - Parameter plus: What a plus sign stands for: a space in forms, itself in paths.
  package static func decoded(_ text: Substring, plus: Unicode.Scalar = "+") -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte == UInt8(ascii: "+") ? UInt8(plus.value) : byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(hexadecimalValue), let low = rest.popFirst().flatMap(hexadecimalValue)
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// Encodes everything except letters, digits and `-._~`.
  ///
  /// Source: RFC 3986 §2.3.
  package static func encoded(_ text: String) -> String {
    var encoded = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        encoded.unicodeScalars.append(Unicode.Scalar(byte))
      default: encoded += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
      }
    }
    return encoded
  }
}
