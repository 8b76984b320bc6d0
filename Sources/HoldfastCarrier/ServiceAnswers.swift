import HoldfastFormats
import HoldfastOnline

/// The answers of a service, as far as a carrier reads them. Members that it does not know are ignored.
package enum ServiceAnswers {
  /// The longest attestation token, in bytes.
  static let maximumAttestationByteCount = 32_768

  /// An answer to a request for a token.
  package enum Issuance {
    case issued(OnlineToken)
    case waits(OnlineRequest, seconds: UInt64)
  }

  /// The state of a request that waits for its decision.
  package enum Decision {
    case waits(seconds: UInt64)
    /// The token can be collected, perhaps once more.
    case approved
    case refused(reason: String?)
    case expired
  }

  /// Reads the answer to evidence: the attestation token, a compact JWE; nil if it is not one.
  package static func attestation(_ answer: HTTPAnswer) -> String? {
    guard answer.status == 200, let value = object(answer), let token = value["attestation"]?.text,
      (1...maximumAttestationByteCount).contains(token.utf8.count), value["expires"]?.number != nil,
      let code = value["arc"]?.text, isIdentifier(code)
    else { return nil }
    let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 5, parts.allSatisfy({ $0.allSatisfy(isBase64URL) }) else { return nil }
    return token
  }

  /// Reads the answer to a request for a token; nil if it is not one.
  package static func issuance(_ answer: HTTPAnswer, from service: ServiceAddress) -> Issuance? {
    guard let value = object(answer) else { return nil }
    switch answer.status {
    case 201: return OnlineToken(value, from: service).map { .issued($0) }
    case 202:
      guard value["status"]?.text == "waiting", let id = value["request"]?.text,
        let request = OnlineRequest(id: id, service: service)
      else { return nil }
      return .waits(request, seconds: pollSeconds(answer))
    default: return nil
    }
  }

  /// Reads the answer to a question about a request; nil if it is not one.
  package static func decision(_ answer: HTTPAnswer, on request: OnlineRequest) -> Decision? {
    guard answer.status == 200, let value = object(answer), value["request"]?.text == request.id else { return nil }
    let reason = value["reason"]
    guard reason == nil || reason == .null || reason?.text != nil else { return nil }
    switch value["status"]?.text {
    case "waiting": return .waits(seconds: pollSeconds(answer))
    case "approved", "collected": return .approved
    case "refused": return .refused(reason: reason?.text.map { $0.cut(to: CarrierFailure.Bound.detail) })
    case "expired": return .expired
    default: return nil
    }
  }

  /// Reads the problem that an answer with an error describes; nil if it describes none.
  ///
  /// Source: RFC 9457 §3.
  package static func problem(_ answer: HTTPAnswer, kind: CarrierFailure.Kind, service: ServiceAddress)
    -> CarrierFailure?
  {
    guard answer.hasType("application/problem+json"),
      let value = try? JSONValue(parsing: answer.body, byteLimit: HTTPAnswer.maximumByteCount, otherNumbers: .asText),
      value.members != nil, value["status"] == nil || value["status"]?.number == answer.status
    else { return nil }
    var isWellFormed = true
    func text(_ name: String, _ limit: Int) -> String? {
      guard let member = value[name], member != .null else { return nil }
      if member.text == nil { isWellFormed = false }
      return member.text?.cut(to: limit)
    }
    func identifier(_ name: String) -> String? {
      let identifier = text(name, CarrierFailure.Bound.identifier + 1)
      if let identifier, !isIdentifier(identifier) { isWellFormed = false }
      return identifier
    }
    let reasons = value["reasons"].flatMap { $0 == .null ? nil : $0 } ?? .array([])
    let names = reasons.elements?.compactMap(\.text) ?? []
    let failure = CarrierFailure(
      kind, service: service.description, status: answer.status, title: text("title", CarrierFailure.Bound.title),
      detail: text("detail", CarrierFailure.Bound.detail), reasons: names, responseCode: identifier("arc"),
      requestID: identifier("request_id"), help: text("help", CarrierFailure.Bound.title))
    guard isWellFormed, names.count == reasons.elements?.count, names.count <= CarrierFailure.Bound.reasonCount,
      names.allSatisfy(isIdentifier)
    else { return nil }
    return failure
  }

  /// Reads the answer to a call: an object, or a text of ASCII without control characters; nil for anything else.
  package static func value(_ answer: HTTPAnswer, of operation: ServiceOperation) -> JSONValue? {
    guard answer.status == 200, answer.hasType(operation.answerType) else { return nil }
    if operation.answerType == "application/json" { return object(answer, byteLimit: operation.answerByteLimit) }
    guard !answer.body.isEmpty, answer.body.allSatisfy({ (0x21...0x7e).contains($0) }) else { return nil }
    return .string(String(decoding: answer.body, as: UTF8.self))
  }

  private static func object(
    _ answer: HTTPAnswer, byteLimit: Int = HTTPAnswer.maximumByteCount
  ) -> JSONValue? {
    guard answer.hasType("application/json"),
      let value = try? JSONValue(parsing: answer.body, byteLimit: byteLimit, otherNumbers: .asText),
      value.members != nil
    else { return nil }
    return value
  }

  /// The time until the service is asked about a request again: 1 s to an hour, 5 s by default.
  private static func pollSeconds(_ answer: HTTPAnswer) -> UInt64 {
    min(max(answer.retryAfterSeconds ?? 5, 1), Rotation.greatestRetryAfterSeconds)
  }

  private static func isIdentifier(_ text: String) -> Bool {
    (1...CarrierFailure.Bound.identifier).contains(text.utf8.count)
      && text.utf8.allSatisfy { isBase64URL($0) || ".:".utf8.contains($0) }
  }

  private static func isBase64URL(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"): true
    default: false
    }
  }
}

extension String {
  /// Returns the first characters that fit into that many bytes.
  fileprivate func cut(to limit: Int) -> String {
    guard utf8.count > limit else { return self }
    var cut = ""
    var byteCount = 0
    for scalar in unicodeScalars {
      byteCount += UTF8.width(scalar)
      guard byteCount <= limit else { break }
      cut.unicodeScalars.append(scalar)
    }
    return cut
  }
}
