import HoldfastCore
import HoldfastFormats

/// A line that a carrier writes: any number of lines about its progress, then its result.
package enum CarrierReport: Sendable {
  /// A step of the task.
  case progress(CarrierProgress)
  /// The end of the task.
  case result(CarrierResult)

  /// The maximum byte count of a line, with its newline, unless it passes on a longer answer.
  package static let maximumByteCount = 65_536
}

/// A step of a carrier's task.
package enum CarrierProgress: Sendable {
  /// The service gets the evidence.
  case attesting(ServiceAddress)
  /// The service has attested the app, and is asked for the token.
  case asking(ServiceAddress)
  /// An operator has to decide; the service is asked again after that many seconds.
  case waiting(OnlineRequest, seconds: UInt64)
  /// A service does not answer; another one is tried, or the same one again.
  case failed(CarrierFailure)
}

/// The end of a carrier's task.
package enum CarrierResult: Sendable {
  /// The service issued a token.
  case token(OnlineToken)
  /// The service answered a call.
  case answer(ServiceAnswer)
  /// The time is over, and the operator has not decided.
  case waiting(OnlineRequest)
  /// There is no token.
  case failure(CarrierFailure)
}

/// A token that a service issued, with what the service says of it.
package final class OnlineToken: Sendable {
  /// The service that issued it.
  package let service: ServiceAddress
  /// The token, 1 to 3072 bytes.
  package let bytes: [UInt8]
  /// The name of its format, one of ``TokenWishes/formats``.
  package let format: String
  /// The issuer's report, an object.
  package let claims: JSONValue
  /// The issuer's terms, a compact JWS of at most 50,000 characters; nil if there are none.
  package let terms: String?

  /// Reads the members `token`, `format`, `claims` and `terms` of an object that may have others; nil if one is out of bounds.
  package init?(_ value: JSONValue, from service: ServiceAddress) {
    guard let text = value["token"]?.text, !text.isEmpty, let format = value["format"]?.text,
      TokenWishes.formats.contains(format), let claims = value["claims"], claims.members != nil,
      value["terms"].map({ $0.text.map { $0.utf8.count <= SignedTerms.maximumByteCount } ?? false }) ?? true
    else { return nil }
    terms = value["terms"]?.text
    var buffer = ByteBuffer<3072>()
    let encoded = Array(text.utf8)
    do throws(EncodingFault) { try buffer.append(paddedBase64: encoded.span) } catch { return nil }
    (self.service, bytes, self.format, self.claims) = (service, [UInt8](buffer.bytes), format, claims)
  }
}

extension CarrierReport {
  /// Parses a line without its newline; nil for anything that a carrier does not write.
  package init?(_ line: [UInt8], byteLimit: Int = maximumByteCount) {
    guard let value = try? JSONValue(parsing: line, byteLimit: byteLimit) else { return nil }
    if let step = value["progress"]?.text {
      guard let progress = Self.progress(step, value) else { return nil }
      self = .progress(progress)
    } else if let result = value["result"]?.text.flatMap({ Self.result($0, value) }) {
      self = .result(result)
    } else {
      return nil
    }
  }

  private static func progress(_ step: String, _ value: JSONValue) -> CarrierProgress? {
    switch step {
    case "attesting" where value.hasOnly(["progress", "service"]): return service(value).map { .attesting($0) }
    case "asking" where value.hasOnly(["progress", "service"]): return service(value).map { .asking($0) }
    case "waiting" where value.hasOnly(["progress", "service", "request", "seconds"]):
      guard let request = request(value), let seconds = value["seconds"]?.number else { return nil }
      return .waiting(request, seconds: seconds)
    case "failed" where value.hasOnly(["progress", "failure"]):
      return value["failure"].flatMap { CarrierFailure($0) }.map { .failed($0) }
    default: return nil
    }
  }

  private static func result(_ name: String, _ value: JSONValue) -> CarrierResult? {
    switch name {
    case "token" where value.hasOnly(["result", "service", "token", "format", "claims", "terms"]):
      return service(value).flatMap { OnlineToken(value, from: $0) }.map { .token($0) }
    case "answer" where value.hasOnly(["result", "service", "answer"]):
      guard let service = service(value), let answer = value["answer"] else { return nil }
      return .answer(ServiceAnswer(from: service, answer))
    case "waiting" where value.hasOnly(["result", "service", "request"]): return request(value).map { .waiting($0) }
    case "failure": return CarrierFailure(value).map { .failure($0) }
    default: return nil
    }
  }

  private static func service(_ value: JSONValue) -> ServiceAddress? {
    value["service"]?.text.flatMap { try? ServiceAddress($0) }
  }

  private static func request(_ value: JSONValue) -> OnlineRequest? {
    guard let service = service(value), let id = value["request"]?.text else { return nil }
    return OnlineRequest(id: id, service: service)
  }
}
