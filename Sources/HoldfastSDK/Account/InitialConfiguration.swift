import HoldfastCore
import HoldfastFormats
import HoldfastOnline
import HoldfastOpenSSL

/// The short text with which an app is set up for one account: the key that signs the account's configurations, and its services.
///
/// `holdfast-service configuration` prints it: `holdfast-configuration:1?key=X&service=Y` with an optional `&pin=Z`. `X` is the
/// SEC 1 uncompressed point of the key in base64url, `Y` the addresses of the services and `Z` the pins of their keys, both
/// percent-encoded, with commas between several.
package struct InitialConfiguration: Sendable {
  /// The text.
  let text: String
  /// The key that signs the account's configurations.
  let key: P256Point
  /// The id of the key, which also names the account.
  let keyID: KeyID
  /// The services, 1 to ``ServiceAddress/countLimit``.
  let services: [ServiceAddress]
  /// The pins of which the key of each service must have one; none if its certificate suffices.
  let pins: [ServicePin]

  private static let scheme = "holdfast-configuration:1?"
  private static let byteLimit = 8192

  /// Parses the text.
  ///
  /// - Throws: ``ConfigurationFault/malformed``, ``ConfigurationFault/key``, ``ConfigurationFault/service``,
  ///   ``ConfigurationFault/pin``.
  package init(_ text: String) throws(ConfigurationFault) {
    let bytes = Array(text.utf8)
    guard bytes.count <= Self.byteLimit, text.hasPrefix(Self.scheme) else { throw .malformed }
    var values: [String: String] = [:]
    let query = bytes.dropFirst(Self.scheme.utf8.count)
    for pair in query.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false) {
      guard let equals = pair.firstIndex(of: UInt8(ascii: "=")), let value = percentDecoded(pair[(equals + 1)...])
      else {
        throw .malformed
      }
      let name = String(decoding: pair[..<equals], as: UTF8.self)
      guard ["key", "service", "pin"].contains(name), values[name] == nil else { throw .malformed }
      values[name] = String(decoding: value, as: UTF8.self)
    }
    guard let key = values["key"], let service = values["service"] else { throw .malformed }
    self.text = text
    self.key = try Self.point(key)
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { keyID = try HoldfastCore.keyID(of: self.key, using: &cryptography) } catch {
      throw .key
    }
    do throws(ServiceAddressFault) { services = try ServiceAddress.list(service) } catch { throw .service }
    let texts = values["pin"].map { $0.split(separator: ",", omittingEmptySubsequences: false) } ?? []
    pins = texts.compactMap { ServicePin(String($0)) }
    guard pins.count == texts.count, pins.count <= ServicePin.countLimit else { throw .pin }
  }

  private static func point(_ text: String) throws(ConfigurationFault) -> P256Point {
    guard let bytes = try? decodePublicBase64URL(text), let point = P256Point(bytes.span) else { throw .key }
    do throws(CryptographyFailure) { try checkPoint(point.bytes, on: .p256) } catch { throw .key }
    return point
  }
}

/// A reason why a text is not the initial configuration of an account.
public enum ConfigurationFault: Error, Equatable {
  /// The text has another form.
  case malformed
  /// The key is not an uncompressed point of P-256.
  case key
  /// A service has no usable address.
  case service
  /// A pin is none, or there are more than eight.
  case pin
}

/// Returns the bytes of a percent-encoded text; nil if an escape is incomplete. Source: RFC 3986 §2.1.
private func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
  var decoded: [UInt8] = []
  var rest = text
  while let byte = rest.popFirst() {
    guard byte == UInt8(ascii: "%") else {
      decoded.append(byte)
      continue
    }
    guard let high = rest.popFirst().flatMap(hexadecimalValue), let low = rest.popFirst().flatMap(hexadecimalValue)
    else { return nil }
    decoded.append(high << 4 | low)
  }
  return decoded
}
