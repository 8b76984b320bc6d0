import HoldfastFormats
import HoldfastOnline

/// The exchange of evidence for a token with the first service that answers.
///
/// Evidence and the request for a token go to the same service, one after the other, because another one might not accept its
/// attestation token. Sending either again does no harm: the service gives the same token.
package struct Exchange<Environment: ExchangeEnvironment> {
  private let task: CarrierTask
  private let deadline: UInt64
  private var rotation: Rotation
  package private(set) var environment: Environment

  /// The longest time for one answer, in milliseconds.
  static var answerMilliseconds: UInt64 { 10_000 }

  /// Begins the task's time.
  package init(_ task: CarrierTask, environment: Environment) {
    (self.task, self.environment) = (task, environment)
    deadline = environment.monotonicMilliseconds() + task.timeoutSeconds * 1000
    rotation = Rotation(count: task.services.count)
  }

  /// The request that an operator has to decide, or has decided.
  private enum Stage {
    case asking
    case awaiting(OnlineRequest)
  }

  /// A failure, and the time for which the service asks to be left alone.
  private struct Setback: Error {
    let failure: CarrierFailure
    var retryAfterSeconds: UInt64?
  }

  /// Exchanges the evidence, and returns when there is a result or the time is over.
  package mutating func run() -> CarrierResult {
    var stage = task.request.map { Stage.awaiting($0) } ?? .asking
    var (request, failure): (OnlineRequest?, CarrierFailure) = (task.request, CarrierFailure(.timedOut))
    while let index = nextService(preferring: request?.service) {
      let service = task.services[index]
      do throws(Setback) {
        var rest: UInt64 = 0
        switch stage {
        case .asking:
          switch try askForToken(service) {
          case .issued(let token): return .token(token)
          case .waits(let new, let seconds):
            (request, stage, rest) = (new, .awaiting(new), seconds)
            environment.report(.waiting(new, seconds: seconds))
          }
        case .awaiting(let asked):
          if let seconds = try askForDecision(asked, at: service) {
            rest = seconds
            environment.report(.waiting(asked, seconds: seconds))
          } else {
            stage = .asking
          }
        }
        rotation.succeeded(index)
        pause(until: environment.monotonicMilliseconds() + rest * 1000)
      } catch {
        failure = error.failure
        guard failure.kind.isPassing else { return .failure(failure) }
        environment.report(.failed(failure))
        let pause = environment.random(upTo: rotation.greatestPause(index))
        rotation.failed(
          index, now: environment.monotonicMilliseconds(), pause: pause, retryAfterSeconds: error.retryAfterSeconds)
      }
    }
    return request.map { .waiting($0) } ?? .failure(failure)
  }

  /// Waits until a service may be tried, and returns its index; nil once the time is over.
  private mutating func nextService(preferring address: ServiceAddress?) -> Int? {
    let preferred = task.services.firstIndex { $0.address == address }
    let next = rotation.next(now: environment.monotonicMilliseconds(), preferring: preferred)
    pause(until: next.moment)
    return environment.monotonicMilliseconds() < deadline ? next.index : nil
  }

  /// Waits until a moment, or until the time is over.
  private mutating func pause(until moment: UInt64) {
    let now = environment.monotonicMilliseconds()
    let end = min(moment, deadline)
    if end > now { environment.pause(milliseconds: end - now) }
  }

  /// Has a service attest the app, and asks it for the token.
  private mutating func askForToken(_ service: PinnedService) throws(Setback) -> ServiceAnswers.Issuance {
    environment.report(.attesting(service.address))
    let attested = try send(
      "/v1/attest", .object([("device", task.device), ("evidence", .string(task.evidence))]), to: service)
    guard let attestation = ServiceAnswers.attestation(attested) else { throw malformed(attested, service) }
    environment.report(.asking(service.address))
    var members: [(String, JSONValue)] = [("attestation", .string(attestation)), ("device", task.device)]
    if let invitation = task.invitation { members.append(("invitation", .string(invitation))) }
    members += task.wishes.members
    let answer = try send("/v1/tokens", .object(members), to: service)
    guard let issuance = ServiceAnswers.issuance(answer, from: service.address) else {
      throw malformed(answer, service)
    }
    if case .issued(let token) = issuance {
      // The prover accepts no longer line.
      guard token.format == task.wishes.format ?? token.format,
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

  /// Sends a request, and returns an answer with a status below 300.
  ///
  /// - Parameter origin: the service that gave the request its id; another one may not know it, which is no answer.
  private mutating func send(
    _ path: String, _ body: JSONValue?, to service: PinnedService, isAboutRequestOf origin: ServiceAddress? = nil
  ) throws(Setback) -> HTTPAnswer {
    let left = deadline - min(environment.monotonicMilliseconds(), deadline)
    let answer: HTTPAnswer
    do throws(CarrierFailure.Kind) {
      answer = try environment.send(
        HTTPRequest(path: path, body: body?.compact()), to: service,
        withinMilliseconds: max(min(left, Self.answerMilliseconds), 1))
    } catch { throw Setback(failure: CarrierFailure(error, service: service.address.description)) }
    switch answer.status {
    case 200...299: return answer
    case 300...399:
      throw Setback(failure: CarrierFailure(.redirect, service: service.address.description, status: answer.status))
    case 404 where origin != nil && origin != service.address: throw passing(answer, service)
    case 400...499 where ![408, 425, 429].contains(answer.status):
      guard let refusal = ServiceAnswers.problem(answer, kind: .refused, service: service.address) else {
        throw malformed(answer, service)
      }
      throw Setback(failure: refusal)
    case 400...599: throw passing(answer, service)
    default: throw malformed(answer, service)
    }
  }

  private func passing(_ answer: HTTPAnswer, _ service: PinnedService) -> Setback {
    let problem = ServiceAnswers.problem(answer, kind: .notNow, service: service.address)
    return Setback(
      failure: problem ?? CarrierFailure(.notNow, service: service.address.description, status: answer.status),
      retryAfterSeconds: answer.retryAfterSeconds)
  }

  private func malformed(_ answer: HTTPAnswer, _ service: PinnedService) -> Setback {
    Setback(failure: CarrierFailure(.malformedAnswer, service: service.address.description, status: answer.status))
  }
}
