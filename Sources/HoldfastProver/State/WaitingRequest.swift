import HoldfastFormats

/// A request for a token to an online service: the file `request.json` next to the baseline that it is for.
///
/// It contains no evidence, no invitation and no measurement.
package struct WaitingRequest: Sendable {
  /// The wishes and claims with which the token was asked for, an object. Only the same ones continue the request.
  package let wishes: JSONValue
  /// The service that keeps the request until its operator decides; nil as long as no service has said that it waits.
  package let service: String?
  /// The service's id of the request, 32 hexadecimal digits.
  package let id: String?

  package static let fileName = "request.json"
  static let maximumByteCount = 8192

  /// Creates a request.
  package init(wishes: JSONValue, service: String? = nil, id: String? = nil) {
    (self.wishes, self.service, self.id) = (wishes, service, id)
  }

  /// Reads a file. One that is damaged has the wishes `null`.
  package init(_ bytes: [UInt8]) {
    let value = try? JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount)
    self.init(
      wishes: value?["wishes"] ?? .null, service: value?["service"]?.text, id: value?["request"]?.text)
  }

  /// The contents of the file.
  package var encoded: [UInt8] {
    JSONValue.object([
      ("version", .integer(1)), ("wishes", wishes), ("service", service.map { .string($0) } ?? .null),
      ("request", id.map { .string($0) } ?? .null),
    ]).pretty()
  }
}
