#if Service
import HTTPTypes
import HoldfastFormats
import HoldfastService
import Hummingbird
import NIOCore

/// A problem document, the answer to every request that fails.
///
/// Source: RFC 9457 §3.
struct Problem: Error, Sendable {
  let status: HTTPResponse.Status
  /// The identifier of the problem's type, which is part of its URI.
  let type: String
  let title: String
  var detail: String?
  /// All reasons of a refusal, by their identifiers.
  var reasons: [String] = []
  /// The attestation response code.
  var code: String?
  /// The seconds after which the request may be made again.
  var retrySeconds: Int?
  /// The text that tells people whom to ask for help.
  var help: String?
  /// The methods that the path has, for 405.
  var allowedMethods: [String] = []

  /// The response, with the id under which the log has the request.
  func response(requestID: String) -> Response {
    var headers: HTTPFields = [.contentType: Self.mediaType, .cacheControl: "no-store"]
    if let retrySeconds { headers[.retryAfter] = String(retrySeconds) }
    if !allowedMethods.isEmpty { headers[.allow] = allowedMethods.joined(separator: ", ") }
    if status == .unauthorized { headers[.wwwAuthenticate] = "Bearer" }
    return Response(
      status: status, headers: headers,
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: document(requestID: requestID))))
  }

  static let mediaType = "application/problem+json"

  /// The document, with the id under which the log has the request.
  func document(requestID: String) -> [UInt8] {
    JSONValue.object(
      [
        ("type", .string("urn:holdfast:problem:\(type)")), ("title", .string(title)),
        ("status", .integer(UInt64(status.code))), ("detail", detail.map { .string($0) } ?? .null),
        ("reasons", .array(reasons.map { .string($0) })), ("arc", code.map { .string($0) } ?? .null),
        ("request_id", .string(requestID)),
      ] + (help.map { [("help", .string($0))] } ?? [])
    ).compact()
  }
}

extension Problem {
  /// The detail may repeat names of the request's members, whose control characters are escaped.
  static func malformed(_ detail: String) -> Problem {
    Problem(
      status: .badRequest, type: "malformed", title: "The request is malformed.",
      detail: String(String.UnicodeScalarView(detail.printable.unicodeScalars.prefix(4096))))
  }

  static let notFound = Problem(status: .notFound, type: "not-found", title: "There is nothing at this address.")
  static let unauthorized = Problem(
    status: .unauthorized, type: "unauthorized", title: "An operator's token is required.")
  static let tooLarge = Problem(status: .contentTooLarge, type: "too-large", title: "The body is too large.")
  static let headTooLarge = Problem(
    status: .requestHeaderFieldsTooLarge, type: "head-too-large", title: "The header of the request is too large.")
  static let tooSlow = Problem(status: .requestTimeout, type: "too-slow", title: "The request did not arrive in time.")
  static let wrongMediaType = Problem(
    status: .unsupportedMediaType, type: "media-type", title: "The body must be application/json.")

  static func methodNotAllowed(_ allowed: [String]) -> Problem {
    Problem(
      status: .methodNotAllowed, type: "method-not-allowed", title: "This address does not have this method.",
      allowedMethods: allowed)
  }

  static func forbidden(_ scope: OperatorScope) -> Problem {
    Problem(
      status: .forbidden, type: "forbidden", title: "The operator's token does not permit this.",
      detail: "It requires the scope \(scope.rawValue).")
  }

  static func tooManyRequests(retrySeconds: Int) -> Problem {
    Problem(
      status: .tooManyRequests, type: "too-many-requests", title: "There are too many requests from this address.",
      retrySeconds: retrySeconds)
  }

  /// A refusal, with all reasons.
  init(_ refusal: Refusal) {
    self.init(
      status: .forbidden, type: "refused", title: "The request is refused.",
      detail: refusal.reasons.map(\.text).joined(separator: " "), reasons: refusal.reasons.map(\.identifier),
      code: refusal.code?.description)
  }

  /// A refusal of what an app asked for, whether it is approved or not.
  init(_ refusal: DomainRefusal, code: String?) {
    let (status, type, title): (HTTPResponse.Status, String, String) =
      switch refusal {
      case .unknownDomain: (.notFound, "unknown-domain", "Unknown domain.")
      case .unprotectedDomain: (.conflict, "unprotected-domain", "Unprotected domain.")
      case .domainWithoutMeasurement: (.conflict, "domain-without-measurement", "Domain without measurement.")
      case .disabledFeature: (.forbidden, "disabled-feature", "Disabled feature.")
      }
    self.init(
      status: status, type: type, title: title, detail: refusal.text, reasons: [refusal.rawValue], code: code)
  }

  /// A fault of the service itself. The document does not say which.
  init(_ fault: FleetFault) {
    switch fault {
    case .database(.unavailable), .database(.busy), .database(.slow), .database(.conflict), .database(.uncertain),
      .database(.notSynchronous), .database(.noStandby), .database(.olderTimeline), .database(.readOnly),
      .database(.full):
      self.init(
        status: .serviceUnavailable, type: "unavailable", title: "The service cannot answer at present.",
        retrySeconds: 2)
    case .noClock:
      self.init(
        status: .serviceUnavailable, type: "clock", title: "The service's clock was set, and cannot be relied on.",
        retrySeconds: 60)
    default:
      self.init(status: .internalServerError, type: "internal", title: "The service failed.")
    }
  }

  /// The fault of a backup that was to be answered.
  init(_ fault: BackupFileFault) {
    switch fault {
    case .backup(let fault) where fault.kind == .fleet: self.init(fault.cause)
    case .file(let error) where error.kind == .diskFull: self.init(FleetFault.database(.full))
    case .backup, .file: self.init(FleetFault.corrupt)
    }
  }

  /// The fault of an operator's request.
  init(_ fault: AdministrationFault) {
    switch fault {
    case .mistake(let mistake): self = .malformed(mistake.text)
    case .notFound: self = .notFound
    case .conflict(let conflict):
      self.init(
        status: .conflict, type: "conflict", title: "The state of the record does not permit this.",
        reasons: [conflict.rawValue])
    case .fleet(let fault): self.init(fault)
    }
  }
}

extension HTTPField.Name {
  /// The id of a request, in its answer and in the log.
  static let requestID = HTTPField.Name("X-Request-ID")!
}
#endif
