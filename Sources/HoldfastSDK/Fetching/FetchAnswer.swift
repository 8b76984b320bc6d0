import HoldfastCore
import HoldfastFormats

/// The service's answer to an app after its attestation, to `POST /v1/fetch`. Members that the library does not know are
/// ignored.
struct FetchAnswer: Sendable {
  /// The token for the API domain, and the time at which it expires; nil if none was asked for.
  let token: (jwt: CompactJWT, expires: UInt64)?
  /// The custom JWT; nil if none was asked for.
  let custom: CompactJWT?
  /// The account's texts by their names; nil if they were not asked for.
  let strings: SecureString.Values?
  /// The key for signatures over messages; nil if the feature is off.
  let messageKey: MessageKey?
  /// The attestation response code.
  let responseCode: String
  /// The id that the account gives this host.
  let deviceID: FixedBytes<16>
  /// The revision of the account's newest configuration.
  let revision: UInt64
  /// The revision from which pins have to be applied; 0 for none.
  let forcedPins: UInt64

  /// Parses the answer; nil for anything that the interface does not allow.
  init?(_ value: JSONValue) {
    guard let code = value["arc"]?.text, isResponseCode(code), let id = value["did"]?.text,
      let deviceID = FixedBytes<16>(paddedBase64: id), let revision = value["configuration"]?.number,
      let forced = value["force_pins"]?.number, let token = value["token"], let expires = value["expires"],
      let custom = value["custom"], let strings = value["strings"], let key = value["message_key"]
    else { return nil }
    if token == .null, expires == .null {
      self.token = nil
    } else {
      guard let jwt = token.text.flatMap({ CompactJWT($0) }), let expires = expires.number,
        jwt.claims["exp"]?.number == expires, let issued = jwt.claims["iat"]?.number, issued < expires
      else { return nil }
      self.token = (jwt, expires)
    }
    let customToken = custom.text.flatMap { CompactJWT($0) }
    let texts = SecureString.values(strings)
    let messageKey = key.text.flatMap { MessageKey(paddedBase64: $0) }
    guard custom == .null || customToken != nil, strings == .null || texts != nil, key == .null || messageKey != nil
    else { return nil }
    (self.custom, self.strings, self.messageKey) = (customToken, texts, messageKey)
    (responseCode, self.deviceID, self.revision, forcedPins) = (code, deviceID, revision, forced)
  }
}

/// The attestation token for a device: the answer to `POST /v1/attest`.
struct AttestationAnswer: Sendable {
  /// The token, a compact JWE for the backend.
  let token: String
  /// The attestation response code.
  let responseCode: String

  private static let byteLimit = 32_768

  /// Parses the answer; nil for anything that the interface does not allow.
  init?(_ value: JSONValue) {
    guard let token = value["attestation"]?.text, token.utf8.count <= Self.byteLimit,
      value["expires"]?.number != nil, let code = value["arc"]?.text, isResponseCode(code)
    else { return nil }
    let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 5, parts.allSatisfy({ $0.allSatisfy(isBase64URL) }) else { return nil }
    (self.token, responseCode) = (token, code)
  }
}

/// The key with which an app signs messages, 32 bytes.
final class MessageKey: Sendable {
  let key: Secret<32>

  init(_ key: consuming Secret<32>) { self.key = key }

  convenience init?(paddedBase64 text: String) {
    let encoded = Array(text.utf8)
    var buffer = ByteBuffer<32>()
    do throws(EncodingFault) { try buffer.append(paddedBase64: encoded.span) } catch { return nil }
    guard let key = Secret<32>(copying: buffer.bytes) else { return nil }
    self.init(key)
  }
}

extension TypedBytes {
  /// Decodes exactly these bytes from padded base64; nil for anything else.
  init?(paddedBase64 text: String) {
    let encoded = Array(text.utf8)
    var buffer = ByteBuffer<64>()
    do throws(EncodingFault) { try buffer.append(paddedBase64: encoded.span) } catch { return nil }
    self.init(buffer.bytes)
  }
}

/// Returns whether a text may be an attestation response code.
private func isResponseCode(_ text: String) -> Bool {
  (1...64).contains(text.utf8.count) && text.utf8.allSatisfy(isBase64URL)
}

private func isBase64URL(_ byte: UInt8) -> Bool {
  switch byte {
  case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "_"): true
  default: false
  }
}
