import HoldfastFormats
import HoldfastOnline

/// The exchange of evidence for a token.
///
/// Evidence and the request for a token go to the same service, one after the other, because another one might not accept its
/// attestation token. Sending either again does no harm: the service gives the same token.
extension Exchange {
  /// The request that an operator has to decide, or has decided.
  private enum Stage {
    case asking
    case awaiting(OnlineRequest)
  }

  /// Exchanges the evidence, and returns when there is a result or the time is over.
  mutating func enroll(_ enrolment: EnrolmentWork) -> CarrierResult {
    var stage = enrolment.request.map { Stage.awaiting($0) } ?? .asking
    var request = enrolment.request
    preferred = request?.service
    let end = takeTurns(attempts: enrolment.attempts) { (exchange, service) throws(Setback) in
      switch stage {
      case .asking:
        switch try exchange.askForToken(enrolment, at: service) {
        case .issued(let token): return .done(.token(token))
        case .waits(let new, let seconds):
          (request, stage, exchange.preferred) = (new, .awaiting(new), new.service)
          exchange.environment.report(.waiting(new, seconds: seconds))
          return .goesOn(afterSeconds: seconds)
        }
      case .awaiting(let asked):
        if let seconds = try exchange.askForDecision(asked, at: service) {
          exchange.environment.report(.waiting(asked, seconds: seconds))
          return .goesOn(afterSeconds: seconds)
        }
        stage = .asking
        return .goesOn(afterSeconds: 0)
      }
    }
    switch end {
    case .success(let result): return result
    case .failure(let failure): return request.map { .waiting($0) } ?? .failure(failure)
    }
  }

  /// Has a service attest the app, and asks it for the token.
  private mutating func askForToken(
    _ enrolment: EnrolmentWork, at service: PinnedService
  ) throws(Setback) -> ServiceAnswers.Issuance {
    environment.report(.attesting(service.address))
    let attested = try send(
      "/v1/attest", .object([("device", enrolment.device), ("evidence", .string(enrolment.evidence))]), to: service)
    guard let attestation = ServiceAnswers.attestation(attested) else { throw malformed(attested, service) }
    environment.report(.asking(service.address))
    var members: [(String, JSONValue)] = [("attestation", .string(attestation)), ("device", enrolment.device)]
    if let invitation = enrolment.invitation { members.append(("invitation", .string(invitation))) }
    members += enrolment.wishes.members
    let answer = try send("/v1/tokens", .object(members), to: service)
    guard let issuance = ServiceAnswers.issuance(answer, from: service.address) else {
      throw malformed(answer, service)
    }
    if case .issued(let token) = issuance {
      // The prover accepts no longer line.
      guard token.format == enrolment.wishes.format ?? token.format,
        CarrierReport.result(.token(token)).line.count <= CarrierReport.maximumByteCount
      else { throw malformed(answer, service) }
    }
    return issuance
  }

  /// Returns the seconds after which a service is asked again about a request that waits; nil if the token can be collected.
  private mutating func askForDecision(
    _ request: OnlineRequest, at service: PinnedService
  ) throws(Setback) -> UInt64? {
    let answer = try send("/v1/requests/\(request.id)", nil, to: service, isAboutRequestOf: request.service)
    guard let decision = ServiceAnswers.decision(answer, on: request) else { throw malformed(answer, service) }
    switch decision {
    case .waits(let seconds): return seconds
    case .approved: return nil
    case .refused(let reason):
      throw Setback(
        failure: CarrierFailure(.requestRefused, service: service.address.description, detail: reason))
    case .expired: throw Setback(failure: CarrierFailure(.requestExpired, service: service.address.description))
    }
  }
}
