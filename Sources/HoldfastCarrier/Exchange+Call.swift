import HoldfastFormats
import HoldfastOnline

extension Exchange {
  /// Sends the request of a call to one service after the other until one answers, each as often as the call says.
  mutating func answer(_ call: ServiceCall) -> CarrierResult {
    let turnLimit = call.attemptCount * UInt64(task.services.count)
    let end = takeTurns(atMost: turnLimit) { (exchange, service) throws(Setback) in
      let operation = call.operation
      let answer = try exchange.send(
        call.path, call.body, to: service, answerByteLimit: operation.answerByteLimit)
      guard let value = ServiceAnswers.value(answer, of: operation) else { throw exchange.malformed(answer, service) }
      let result = CarrierResult.answer(ServiceAnswer(from: service.address, value))
      // The prover accepts no longer line.
      guard CarrierReport.result(result).line.count <= operation.answerByteLimit else {
        throw Setback(failure: CarrierFailure(.tooLongAnswer, service: service.address.description))
      }
      return .done(result)
    }
    switch end {
    case .success(let result): return result
    case .failure(let failure): return .failure(failure)
    }
  }
}
