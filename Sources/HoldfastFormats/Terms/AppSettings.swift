import HoldfastCore

/// Settings that an issuer gives an app together with a token. Holdfast does not read them.
public struct AppSettings: Sendable, Equatable {
  /// The kinds of settings.
  public enum Kind: String, Sendable, CaseIterable {
    /// One JSON text (RFC 8259): UTF-8, without a repeated member, of at most 16 levels.
    case json
    /// UTF-8.
    case text
    /// Any bytes.
    case bytes
  }

  /// The kind of the settings, which was checked.
  public let kind: Kind
  /// The settings, at most 16,384 bytes, exactly as the issuer wrote them.
  public let bytes: [UInt8]

  /// The largest number of bytes.
  public static let maximumByteCount = 16_384

  /// Creates settings; nil if there are more than 16,384 bytes, or they are not of the kind.
  public init?(_ kind: Kind, _ bytes: [UInt8]) {
    guard bytes.count <= Self.maximumByteCount else { return nil }
    switch kind {
    case .json:
      guard
        (try? JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount, otherNumbers: .asText)) != nil
      else { return nil }
    case .text: guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
    case .bytes: break
    }
    (self.kind, self.bytes) = (kind, bytes)
  }

  /// The settings as text; nil for bytes.
  public var text: String? { kind == .bytes ? nil : String(decoding: bytes, as: UTF8.self) }
}

extension AppSettings {
  /// Reads `{"type": "json", "value": "<base64>"}`.
  ///
  /// - Throws: The first mistake in the member.
  package init(_ settings: JSONMember) throws(JSONMistake) {
    try settings.checkMembers(["type", "value"])
    let (type, value) = (try settings.required("type"), try settings.required("value"))
    guard let kind = type.value.text.flatMap(Kind.init) else {
      throw type.mistake(.text(of: Kind.allCases.map(\.rawValue)))
    }
    let form = JSONMistake.Expectation.form("base64 with padding, of at most \(Self.maximumByteCount) bytes")
    guard let text = value.value.text, text.utf8.count <= (Self.maximumByteCount + 2) / 3 * 4 else {
      throw value.mistake(form)
    }
    let bytes: [UInt8]
    do throws(EncodingFault) { bytes = try decodePublicPaddedBase64(text) } catch { throw value.mistake(form) }
    guard let known = AppSettings(kind, bytes) else {
      throw value.mistake(bytes.count > Self.maximumByteCount ? form : .form("base64 of settings of the type \(kind)"))
    }
    self = known
  }

  /// The settings as ``init(_:)`` reads them.
  package var json: JSONValue {
    .object([("type", .string(kind.rawValue)), ("value", .string(paddedBase64(bytes)))])
  }
}
