import HoldfastCore
import HoldfastLinux
import HoldfastTransport

extension Prover {
  /// Proves to a device from a task. The call waits without blocking a thread of the cooperative pool.
  ///
  /// Parameters and result are those of the function of the same name that blocks. When the task is cancelled, the proof
  /// ends as ``Cancellation`` says.
  public func prove(
    _ request: borrowing Request, at endpoint: Endpoint, options: ProofOptions = ProofOptions()
  ) async throws(ProverError) -> ProofOutcome {
    let request = Shared(request.copy())
    return try await onThread(options) { options throws(ProverError) in
      try prove(request.value, at: endpoint, options: options)
    }
  }

  /// The same over a channel that is already connected. When the task is cancelled, the channel is shut down.
  public func prove(
    _ request: borrowing Request, over channel: any MessageChannel, options: ProofOptions = ProofOptions()
  ) async throws(ProverError) -> ProofOutcome {
    let request = Shared(request.copy())
    return try await onThread(options) { options throws(ProverError) in
      try prove(request.value, over: channel, options: options)
    }
  }

  /// Runs a proof on a thread of its own, and cancels it with the task.
  private func onThread(
    _ options: ProofOptions, _ body: @escaping @Sendable (ProofOptions) throws(ProverError) -> ProofOutcome
  ) async throws(ProverError) -> ProofOutcome {
    var options = options
    let cancellation = options.cancellation ?? Cancellation()
    options.cancellation = cancellation
    let conditions = options
    let result: Result<ProofOutcome, ProverError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isStarted = Thread.detach {
          do throws(ProverError) { continuation.resume(returning: .success(try body(conditions))) } catch {
            continuation.resume(returning: .failure(error))
          }
        }
        if !isStarted { continuation.resume(returning: .failure(.noThread)) }
      }
    } onCancel: {
      cancellation.cancel()
    }
    return try result.get()
  }
}

/// A value without copies that several owners read.
final class Shared<Value: ~Copyable & Sendable>: Sendable {
  let value: Value
  init(_ value: consuming Value) { self.value = value }
}
