import HoldfastFormats

/// The reason why a carrier has no token. It contains what the service says of it, bounded.
package final class CarrierFailure: Error {
  /// The kind of a failure.
  package enum Kind: String, Sendable {
    /// The service refuses, for good.
    case refused
    /// The operator refused the request.
    case requestRefused
    /// The operator did not decide in time.
    case requestExpired
    /// The service's name is unknown.
    case noName
    /// No connection could be made, or it broke.
    case noConnection
    /// The service took too long.
    case timedOut
    /// No connection by TLS 1.3 could be made.
    case noTLS
    /// The service says that it cannot answer now.
    case notNow
    /// The service's key is none of the pinned ones.
    case wrongPin
    /// The service's certificate has expired, or is not valid yet.
    case expiredCertificate
    /// The service's certificate is for another name.
    case certificateOfAnotherName
    /// The service's certificate comes from no trusted authority.
    case untrustedCertificate
    /// The file with the authorities cannot be used.
    case badAuthorities
    /// The service sends the carrier elsewhere.
    case redirect
    /// The answer is not one of this interface.
    case malformedAnswer
    /// The answer is too long.
    case tooLongAnswer
    /// The carrier itself failed.
    case fault

    /// Whether another service, or a later attempt, may succeed.
    package var isPassing: Bool {
      switch self {
      case .noName, .noConnection, .timedOut, .noTLS, .notNow: true
      default: false
      }
    }
  }

  /// The kind.
  package let kind: Kind
  /// The address of the service; nil if the failure is not that of a service.
  package let service: String?
  /// The status of the HTTP answer; nil if there is none.
  package let status: UInt64?
  /// The title of the problem, as the service tells it; nil if it tells none.
  package let title: String?
  /// The detail of the problem, as the service tells it; nil if it tells none.
  package let detail: String?
  /// The identifiers of the service's reasons.
  package let reasons: [String]
  /// The attestation response code, which stands for the reasons in the service's records; nil if there is none.
  package let responseCode: String?
  /// The service's id of the HTTP request, for its log; nil if there is none.
  package let requestID: String?

  /// The text that tells people whom to ask for help, as the service tells it; nil if it tells none.
  package let help: String?

  /// Creates a failure.
  package init(
    _ kind: Kind, service: String? = nil, status: UInt64? = nil, title: String? = nil, detail: String? = nil,
    reasons: [String] = [], responseCode: String? = nil, requestID: String? = nil, help: String? = nil
  ) {
    (self.kind, self.service, self.status, self.title) = (kind, service, status, title)
    (self.detail, self.reasons, self.responseCode, self.requestID) = (detail, reasons, responseCode, requestID)
    self.help = help
  }
}

extension CarrierFailure {
  /// The largest byte counts and numbers of what a service tells.
  package enum Bound {
    package static let title = 256
    package static let detail = 2048
    package static let identifier = 64
    package static let reasonCount = 16
  }

  private static let names = [
    "result", "kind", "service", "status", "title", "detail", "reasons", "arc", "request_id", "help",
  ]

  /// Reads the result of a carrier; nil for anything else.
  convenience init?(_ value: JSONValue) {
    guard value.hasOnly(Self.names), value.members?.count == Self.names.count,
      let kind = value["kind"]?.text.flatMap(Kind.init(rawValue:)),
      let reasons = value["reasons"]?.elements, reasons.count <= Bound.reasonCount
    else { return nil }
    var isWithinBounds = true
    func text(_ value: JSONValue?, atMost limit: Int) -> String? {
      guard value != .null else { return nil }
      if value?.text == nil || value?.text?.utf8.count ?? 0 > limit { isWithinBounds = false }
      return value?.text
    }
    let status = value["status"]
    self.init(
      kind, service: text(value["service"], atMost: ServiceAddress.maximumByteCount), status: status?.number,
      title: text(value["title"], atMost: Bound.title), detail: text(value["detail"], atMost: Bound.detail),
      reasons: reasons.map { text($0, atMost: Bound.identifier) ?? "" },
      responseCode: text(value["arc"], atMost: Bound.identifier),
      requestID: text(value["request_id"], atMost: Bound.identifier), help: text(value["help"], atMost: Bound.title))
    guard isWithinBounds, status == .null || status?.number != nil else { return nil }
  }
}
