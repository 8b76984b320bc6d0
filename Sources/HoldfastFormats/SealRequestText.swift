import HoldfastCore
import HoldfastOpenSSL

/// The contents of a device's request for a seal, with which a user is asked about one command.
///
/// As text, which fits into a QR code, it is
/// `holdfast-seal:1?d=device&u=user&c=command&p=parameter…&i=challenge&e=expiry&t=text&h=code`, where `p` occurs once for each
/// parameter, and `p`, `e` and `t` may be absent. Every byte of a value that is not unreserved (RFC 3986) is written as `%XX` with
/// digits and upper-case letters, so there is one form only.
///
/// Source: docs/protocol.md, Seal requests.
package struct SealRequestContents: Sendable, Equatable {
  /// The length of the longest request as text, in bytes.
  package static let maximumByteCount = 700
  /// The length of the longest text for people, in UTF-8 bytes.
  package static let maximumTextByteCount = 256
  /// The most parameters: a request of a prover has 8, of which two are the user and the command.
  package static let maximumParameterCount = 6
  fileprivate static let scheme = "holdfast-seal:"
  fileprivate static let version = "1"

  /// The device that asks.
  package var device: DeviceID
  /// The user who is asked, 1 to 32 bytes.
  package var user: String
  /// The command, 1 to 32 bytes.
  package var command: String
  /// The parameters of the command, at most 64 bytes each.
  package var parameters: [String]
  /// The challenge of the device, which also identifies the request.
  package var challenge: FixedBytes<8>
  /// The time at which the request expires, in Unix seconds; nil if the device has no clock.
  package var expires: UInt64?
  /// The text for people that the device's owner has written; nil if there is none.
  package var text: String?

  /// Creates contents from their parts.
  package init(
    device: DeviceID, user: String, command: String, parameters: [String], challenge: FixedBytes<8>, expires: UInt64?,
    text: String?
  ) {
    (self.device, self.user, self.command, self.parameters) = (device, user, command, parameters)
    (self.challenge, self.expires, self.text) = (challenge, expires, text)
  }

  /// Returns the request as text, with its code under the user's host secret; nil if it has more than 700 bytes, or a part is out
  /// of range.
  package func text(under secret: Span<UInt8>) throws(CryptographyFailure) -> [UInt8]? {
    guard isInRange else { return nil }
    let body = body
    let code = try Self.code(over: body, under: secret)
    let whole = body + Array("&h=\(hexadecimal(code.bytes))".utf8)
    return whole.count <= Self.maximumByteCount ? whole : nil
  }

  /// The text without the code, over which the code is computed.
  fileprivate var body: [UInt8] {
    var fields = [("d", base64URL(device.bytes)), ("u", user), ("c", command)]
    fields += parameters.map { ("p", $0) }
    fields.append(("i", hexadecimal(challenge.bytes)))
    if let expires { fields.append(("e", String(expires))) }
    if let text { fields.append(("t", text)) }
    let values = fields.map { "\($0.0)=\(percentEncoded($0.1))" }
    return Array("\(Self.scheme)\(Self.version)?\(values.joined(separator: "&"))".utf8)
  }

  fileprivate var isInRange: Bool {
    (1...32).contains(user.utf8.count) && (1...32).contains(command.utf8.count)
      && parameters.count <= Self.maximumParameterCount && parameters.allSatisfy { $0.utf8.count <= 64 }
      && (expires ?? 0) <= maximumInteger && (1...Self.maximumTextByteCount).contains(text?.utf8.count ?? 1)
  }

  /// Returns the code of a request: the first 16 bytes of the OCRA response without truncation.
  ///
  /// The suite is part of what an OCRA response authenticates, so no host code can serve as one. Source: RFC 6287 §5.1 and §5.2.
  fileprivate static func code(over body: [UInt8], under secret: Span<UInt8>) throws(CryptographyFailure) -> FixedBytes<
    16
  > {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(domain: "holdfast/1 seal request")
    hash.append(body.span)
    let digest: Digest = try hash.finish()
    let digits = Array(hexadecimal(digest.bytes).utf8)
    guard let suite = OCRASuite("OCRA-1:HOTP-SHA256-0:QH64"), let question = OCRAQuestion(digits.span, for: suite)
    else {
      throw CryptographyFailure()
    }
    do throws(OCRAFault) {
      let response = try OCRA.untruncated(
        suite: suite, key: secret, input: OCRAInput(question: question), using: &cryptography)
      guard let code = FixedBytes<16>(response.bytes.extracting(first: 16)) else { throw OCRAFault.cryptography }
      return code
    } catch { throw CryptographyFailure() }
  }
}

/// A request for a seal that was read. Nothing in it is authentic before ``isAuthentic(under:)`` returns true.
package struct UncheckedSealRequest: Sendable, Equatable {
  /// The contents.
  package let contents: SealRequestContents
  private let code: FixedBytes<16>

  /// Reads a request from the bytes of its text, without an end of line.
  ///
  /// - Throws: `newerVersion` if it begins as a request of another version does, `malformed` for anything else that is not exactly
  ///   the text of a request.
  package init(_ bytes: [UInt8]) throws(SealRequestTextFault) {
    guard bytes.count <= SealRequestContents.maximumByteCount, let text = String(validating: bytes, as: UTF8.self)
    else {
      throw .malformed
    }
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].hasPrefix(SealRequestContents.scheme) else { throw .malformed }
    guard parts[0].dropFirst(SealRequestContents.scheme.count).utf8.elementsEqual(SealRequestContents.version.utf8)
    else {
      throw .newerVersion
    }
    var fields = FieldReader(parts[1])
    guard
      let device = fields.next("d").flatMap({ text in (try? decodePublicBase64URL(text)).flatMap { DeviceID($0.span) } }
      ),
      let user = fields.next("u"),
      let command = fields.next("c")
    else { throw .malformed }
    var parameters: [String] = []
    while let parameter = fields.next("p") { parameters.append(parameter) }
    guard let challenge: FixedBytes<8> = fields.next("i").flatMap({ fixedBytes(hexadecimal: $0) }) else {
      throw .malformed
    }
    let expires = fields.next("e").map { UInt64($0) }
    let shown = fields.next("t")
    guard let code: FixedBytes<16> = fields.next("h").flatMap({ fixedBytes(hexadecimal: $0) }), fields.isAtEnd else {
      throw .malformed
    }
    if case .some(.none) = expires { throw .malformed }
    contents = SealRequestContents(
      device: device, user: user, command: command, parameters: parameters, challenge: challenge,
      expires: expires ?? nil, text: shown)
    self.code = code
    // Written again, a text in any other form differs.
    guard contents.isInRange, bytes == contents.body + Array("&h=\(hexadecimal(code.bytes))".utf8) else {
      throw .malformed
    }
  }

  /// Returns whether the device has made exactly this request, whose user has this host secret.
  ///
  /// Timing: does not reveal where the codes differ.
  package func isAuthentic(under secret: Span<UInt8>) throws(CryptographyFailure) -> Bool {
    constantTimeEqual(try SealRequestContents.code(over: contents.body, under: secret).bytes, code.bytes)
  }
}

/// The reasons why a text is no request for a seal.
package enum SealRequestTextFault: Error, Equatable, Sendable {
  /// The text is not one of a request, or is cut, or has more than 700 bytes.
  case malformed
  /// The text is that of a request of another version.
  case newerVersion
}

/// A reader of fields in a fixed order.
private struct FieldReader {
  private var rest: ArraySlice<Substring>

  init(_ text: Substring) { rest = text.split(separator: "&", omittingEmptySubsequences: false)[...] }

  var isAtEnd: Bool { rest.isEmpty }

  /// Returns the value of the next field, if that has this name.
  mutating func next(_ name: String) -> String? {
    guard let field = rest.first, field.hasPrefix(name + "="),
      let value = percentDecoded(field.dropFirst(name.count + 1))
    else { return nil }
    rest.removeFirst()
    return value
  }
}

private func percentEncoded(_ text: String) -> String {
  var encoded = ""
  for byte in text.utf8 {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e:
      encoded.unicodeScalars.append(Unicode.Scalar(byte))
    default:
      encoded += byte < 16 ? "%0" : "%"
      encoded += String(byte, radix: 16, uppercase: true)
    }
  }
  return encoded
}

private func percentDecoded(_ text: Substring) -> String? {
  var bytes: [UInt8] = []
  var rest = text.utf8[...]
  while let byte = rest.popFirst() {
    guard byte == 0x25 else {
      bytes.append(byte)
      continue
    }
    guard let high = rest.popFirst().flatMap({ hexadecimalValue($0) }),
      let low = rest.popFirst().flatMap({ hexadecimalValue($0) })
    else { return nil }
    bytes.append(high << 4 | low)
  }
  return String(validating: bytes, as: UTF8.self)
}
