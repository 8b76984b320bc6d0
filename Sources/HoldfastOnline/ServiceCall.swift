import HoldfastFormats

/// An operation of a service that takes one request and one answer.
package enum ServiceOperation: String, Sendable, CaseIterable {
  /// Gives an app what its attestation permits.
  case fetch
  /// Attests an app for a device.
  case attest
  /// Gives the signed configuration of the account.
  case configuration
  /// Shows a prover the state of its token.
  case enrolment
  /// Tells the service that a prover removed its enrolment.
  case leave
  /// Gives the issuer's rules about the posture of provers.
  case postureRules = "posture-rules"
  /// Gives the bulletins that a prover carries to a device.
  case bulletins
  /// Takes pages of a device's audit log that a prover carried, and gives the receipt for the device.
  case audit

  /// The path below the service's address.
  package var path: String { "/v1/\(rawValue)" }

  /// Whether the request has a body. It is then sent with POST, and otherwise with GET.
  package var hasBody: Bool { answerType == "application/json" && parameters.isEmpty }

  /// The parameters of the query, all of which a request has.
  package var parameters: [String] { self == .bulletins ? ["device", "have"] : [] }

  /// The media type of the answer: a JSON object, or the text of a JWT.
  package var answerType: String {
    switch self {
    case .configuration, .postureRules: "application/jwt"
    case .fetch, .attest, .enrolment, .leave, .bulletins, .audit: "application/json"
    }
  }

  /// The largest byte count of the answer, and of the line in which a carrier passes it on. A fetch brings up to 256 texts of 4096
  /// bytes, whose characters JSON may have to escape.
  package var answerByteLimit: Int {
    switch self {
    case .fetch: 8 << 20
    case .attest, .enrolment, .leave, .postureRules, .bulletins, .audit: 64 << 10
    case .configuration: 1 << 20
    }
  }
}

/// One request to the first service that answers.
package struct ServiceCall: Sendable {
  /// The operation.
  package let operation: ServiceOperation
  /// The body of the request, an object; nil if the operation has none.
  package let body: JSONValue?
  /// The values of the operation's parameters, in their order: hexadecimal digits, which need no escape in a URL.
  package let values: [String]
  /// The number of times that each service is tried, 1 to ``attemptLimit``.
  package let attemptCount: UInt64

  /// The largest number of times that each service is tried.
  package static let attemptLimit: UInt64 = 16

  /// Creates a call; nil if the operation has a body and `body` is not an object, or the other way round, if a parameter is missing or
  /// has no digits, or more than 32, or for a number of attempts that is out of bounds.
  package init?(
    _ operation: ServiceOperation, body: JSONValue? = nil, values: [String] = [], attemptCount: UInt64
  ) {
    guard operation.hasBody ? body?.members != nil : body == nil, values.count == operation.parameters.count,
      values.allSatisfy(Self.isNumber), (1...Self.attemptLimit).contains(attemptCount)
    else { return nil }
    (self.operation, self.body, self.values, self.attemptCount) = (operation, body, values, attemptCount)
  }

  private static func isNumber(_ text: String) -> Bool {
    (1...32).contains(text.utf8.count)
      && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  /// The path below the service's address, with the query.
  package var path: String {
    let query = zip(operation.parameters, values).map { "\($0)=\($1)" }.joined(separator: "&")
    return query.isEmpty ? operation.path : "\(operation.path)?\(query)"
  }
}

/// The answer of a service to a ``ServiceCall``, whose members have not been checked.
package final class ServiceAnswer: Sendable {
  /// The service that answered.
  package let service: ServiceAddress
  /// The answer: an object, or the text of a JWT.
  package let value: JSONValue

  /// Creates an answer.
  package init(from service: ServiceAddress, _ value: JSONValue) { (self.service, self.value) = (service, value) }
}
