import HoldfastFormats
import HoldfastOnline

/// A task's exchange with the first service that answers.
package struct Exchange<Environment: ExchangeEnvironment> {
  let task: CarrierTask
  private let deadline: UInt64
  private var rotation: Rotation
  /// The service that comes first among equals, because it knows the request that waits.
  var preferred: ServiceAddress?
  package internal(set) var environment: Environment

  /// The longest time for one answer, in milliseconds.
  static var answerMilliseconds: UInt64 { 10_000 }

  /// Begins the task's time.
  package init(_ task: CarrierTask, environment: Environment) {
    (self.task, self.environment) = (task, environment)
    deadline = environment.monotonicMilliseconds() + task.timeoutSeconds * 1000
    rotation = Rotation(count: task.services.count)
  }

  /// A failure, and the time for which the service asks to be left alone.
  struct Setback: Error {
    let failure: CarrierFailure
    var retryAfterSeconds: UInt64?
  }

  /// The outcome of one turn with a service.
  enum Turn {
    /// The task is done.
    case done(CarrierResult)
    /// There is more to do, after that many seconds.
    case goesOn(afterSeconds: UInt64)
  }

  /// Carries out the task, and returns when there is a result or the time is over.
  package mutating func run() -> CarrierResult {
    switch task.work {
    case .enrolment(let enrolment): enroll(enrolment)
    case .call(let call): answer(call)
    }
  }

  /// Takes turns with the services until one is done, a failure is final, or the time or the number of turns is over.
  ///
  /// - Parameters:
  ///   - turnLimit: the number of turns.
  ///   - attempts: the number of turns in a row that may fail, and the pause after one.
  ///   - turn: asks a service.
  /// - Returns: the result, or the last failure that might have passed. A pause that a service asks for is never shortened.
  mutating func takeTurns(
    atMost turnLimit: UInt64 = .max, attempts: AttemptRule = .usual,
    _ turn: (inout Self, PinnedService) throws(Setback) -> Turn
  ) -> Result<CarrierResult, CarrierFailure> {
    var failure = CarrierFailure(.timedOut)
    var (turnCount, failureCount): (UInt64, UInt64) = (0, 0)
    while turnCount < turnLimit, let index = nextService() {
      turnCount += 1
      do throws(Setback) {
        switch try turn(&self, task.services[index]) {
        case .done(let result): return .success(result)
        case .goesOn(let seconds):
          rotation.succeeded(index)
          failureCount = 0
          pause(until: environment.monotonicMilliseconds() + seconds * 1000)
        }
      } catch {
        failure = error.failure
        guard failure.kind.isPassing else { return .success(.failure(failure)) }
        failureCount += 1
        if let limit = attempts.retryCount, failureCount > limit { return .failure(failure) }
        environment.report(.failed(failure))
        let pause = attempts.pauseSeconds.map { $0 * 1000 } ?? environment.random(upTo: rotation.greatestPause(index))
        rotation.failed(
          index, now: environment.monotonicMilliseconds(), pause: pause, retryAfterSeconds: error.retryAfterSeconds)
      }
    }
    return .failure(failure)
  }

  /// Waits until a service may be tried, and returns its index; nil once the time is over.
  private mutating func nextService() -> Int? {
    let index = task.services.firstIndex { $0.address == preferred }
    let next = rotation.next(now: environment.monotonicMilliseconds(), preferring: index)
    pause(until: next.moment)
    return environment.monotonicMilliseconds() < deadline ? next.index : nil
  }

  /// Waits until a moment, or until the time is over.
  private mutating func pause(until moment: UInt64) {
    let now = environment.monotonicMilliseconds()
    let end = min(moment, deadline)
    if end > now { environment.pause(milliseconds: end - now) }
  }

  /// Sends a request, and returns an answer with a status below 300.
  ///
  /// - Parameter origin: the service that gave the request its id; another one may not know it, which is no answer.
  mutating func send(
    _ path: String, _ body: JSONValue?, to service: PinnedService, isAboutRequestOf origin: ServiceAddress? = nil,
    answerByteLimit: Int = HTTPAnswer.maximumByteCount
  ) throws(Setback) -> HTTPAnswer {
    let left = deadline - min(environment.monotonicMilliseconds(), deadline)
    let answer: HTTPAnswer
    do throws(CarrierFailure.Kind) {
      answer = try environment.send(
        HTTPRequest(path: path, body: body?.compact(), answerByteLimit: answerByteLimit), to: service,
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

  func malformed(_ answer: HTTPAnswer, _ service: PinnedService) -> Setback {
    Setback(failure: CarrierFailure(.malformedAnswer, service: service.address.description, status: answer.status))
  }
}
