import HoldfastCore
import HoldfastFormats

/// An invitation to enrol: a secret code from a service's operator and, in the text of a QR code, the services that accept it.
package struct Invitation: Sendable {
  /// The code as it is printed: `XXXXX-XXXXX-XXXXX-XXXXX`, in upper case.
  package let code: String
  /// The services that accept the code; none if only the code was given.
  package let services: [ServiceAddress]

  /// The maximum byte count of an invitation.
  package static let maximumByteCount = 4096
  private static let scheme = "holdfast-invitation:"
  private static let characterCount = 20

  /// Reads a printed code, in either case and with hyphens and spaces anywhere, or the text of a QR code:
  /// `holdfast-invitation:1?code=XXXXX-XXXXX-XXXXX-XXXXX&service=https%3A%2F%2Fa.example`.
  ///
  /// - Throws: ``InvitationFault``. It never contains the code.
  package init(_ text: Span<UInt8>) throws(InvitationFault) {
    guard text.count <= Self.maximumByteCount else { throw .malformed }
    let bytes = Self.trimmed([UInt8](text))
    guard let rest = Self.dropping(Self.scheme, from: bytes) else {
      (code, services) = (try Self.code(bytes), [])
      return
    }
    guard let question = rest.firstIndex(of: UInt8(ascii: "?")) else { throw .malformed }
    guard Self.dropping("1?", from: rest) != nil else { throw .otherVersion }
    var (code, service): ([UInt8]?, [UInt8]?)
    for pair in rest[(question + 1)...].split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false) {
      if code == nil, let value = Self.dropping("code=", from: pair) {
        code = try Self.percentDecoded(value)
      } else if service == nil, let value = Self.dropping("service=", from: pair) {
        service = try Self.percentDecoded(value)
      } else {
        throw .malformed
      }
    }
    guard let code, let service else { throw .malformed }
    self.code = try Self.code(code[...])
    do throws(ServiceAddressFault) {
      services = try ServiceAddress.list(String(decoding: service, as: UTF8.self))
    } catch { throw .service(error) }
  }

  /// Creates an invitation from a printed code and the services that accept it.
  ///
  /// - Throws: `malformed` if the code is not one.
  package init(code: String, services: [ServiceAddress]) throws(InvitationFault) {
    let bytes = Array(code.utf8)
    (self.code, self.services) = (try Self.code(bytes[...]), services)
  }

  /// The text of a QR code, which ``init(_:)`` reads. Without services, it is the code itself.
  package var text: String {
    guard !services.isEmpty else { return code }
    let service = services.map(\.description).joined(separator: ",")
    return "\(Self.scheme)1?code=\(code)&service=\(Self.percentEncoded(service))"
  }

  /// Returns the bytes after a prefix of ASCII; nil if they begin in another way.
  private static func dropping(_ prefix: String, from bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    let end = bytes.startIndex + prefix.utf8.count
    guard end <= bytes.endIndex, String(decoding: bytes[..<end], as: UTF8.self) == prefix else { return nil }
    return bytes[end...]
  }

  private static func trimmed(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }
    guard let first = bytes.firstIndex(where: { !isBlank($0) }), let last = bytes.lastIndex(where: { !isBlank($0) })
    else { return [] }
    return bytes[first...last]
  }

  private static func code(_ bytes: ArraySlice<UInt8>) throws(InvitationFault) -> String {
    var code: [UInt8] = []
    var count = 0
    for byte in bytes where byte != UInt8(ascii: "-") && byte != UInt8(ascii: " ") {
      let upper = (0x61...0x7a).contains(byte) ? byte - 0x20 : byte
      guard (0x30...0x39).contains(upper) || (0x41...0x5a).contains(upper), count < characterCount else {
        throw .malformed
      }
      if count > 0, count % 5 == 0 { code.append(UInt8(ascii: "-")) }
      code.append(upper)
      count += 1
    }
    guard count == characterCount else { throw .malformed }
    return String(decoding: code, as: UTF8.self)
  }

  /// Source: RFC 3986 §2.1 and §2.3.
  private static func percentEncoded(_ text: String) -> String {
    var encoded = ""
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
        encoded.unicodeScalars.append(Unicode.Scalar(byte))
      default: encoded += "%" + hexadecimal([byte].span).uppercased()
      }
    }
    return encoded
  }

  /// Source: RFC 3986 §2.1.
  private static func percentDecoded(_ text: ArraySlice<UInt8>) throws(InvitationFault) -> [UInt8] {
    var decoded: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        decoded.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(hexadecimalValue), let low = rest.popFirst().flatMap(hexadecimalValue)
      else { throw .malformed }
      decoded.append(high << 4 | low)
    }
    return decoded
  }
}

/// The reasons why a text is not an invitation.
package enum InvitationFault: Error, Equatable {
  /// The text is neither a code of 20 letters and digits, nor that of a QR code.
  case malformed
  /// The text of the QR code has another version.
  case otherVersion
  /// The services that the QR code names cannot be used.
  case service(ServiceAddressFault)
}
