import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastProver
import HoldfastTransport
import Synchronization

/// The same exchanges from a task, which wait without blocking a thread of the cooperative pool. Parameters and results are those of
/// the functions that block. An exchange that has begun is not cancelled with its task: it ends by its time limit, except for
/// `synchronise` and `challengeDevice`, whose proofs end as `Cancellation` says.
extension AuthenticatorUser {
  /// Becomes a user of a device, with a code from its owner.
  @discardableResult
  public func activate(
    with code: consuming OneUseCode, at endpoint: Endpoint, protection: consuming ProtectionSecret,
    replacing: Bool = false, timeoutMilliseconds: Int = 30_000, clock: any Clock & Sendable = SystemClock()
  ) async throws(UserExchangeError) -> ActivatedUser {
    let code = Handed(code)
    let protection = Handed(protection)
    return try await onThread { () throws(UserExchangeError) in
      guard let code = code.take(), let protection = protection.take() else { throw .authenticator(.failed) }
      return try activate(
        with: code, at: endpoint, protection: protection, replacing: replacing,
        timeoutMilliseconds: timeoutMilliseconds, clock: clock)
    }
  }

  /// Ends a lockout at a device, with a code from its owner.
  public static func unlock(
    with code: consuming OneUseCode, at endpoint: Endpoint, timeoutMilliseconds: Int = 30_000
  ) async throws(UserExchangeError) {
    let code = Handed(code)
    try await onThread { () throws(UserExchangeError) in
      guard let code = code.take() else { throw .authenticator(.failed) }
      try unlock(with: code, at: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    }
  }

  /// Ends a lockout at a device, and gives the authenticator new secrets under a new PIN or key.
  @discardableResult
  public func unlock(
    with code: consuming OneUseCode, at endpoint: Endpoint, newProtection protection: consuming ProtectionSecret,
    timeoutMilliseconds: Int = 30_000, clock: any Clock & Sendable = SystemClock()
  ) async throws(UserExchangeError) -> ActivatedUser {
    let code = Handed(code)
    let protection = Handed(protection)
    return try await onThread { () throws(UserExchangeError) in
      guard let code = code.take(), let protection = protection.take() else { throw .authenticator(.failed) }
      return try unlock(
        with: code, at: endpoint, newProtection: protection, timeoutMilliseconds: timeoutMilliseconds, clock: clock)
    }
  }

  /// Takes over a device's time and counters.
  public func synchronise(
    _ user: String? = nil, as prover: Prover, at endpoint: Endpoint, options: ProofOptions = ProofOptions(),
    clock: any Clock & Sendable = SystemClock()
  ) async throws(UserExchangeError) -> SynchronisedUser {
    try await cancellable(options) { options throws(UserExchangeError) in
      try synchronise(user, as: prover, at: endpoint, options: options, clock: clock)
    }
  }

  /// Asks a device for the data with which a user can be asked for the seal over a command.
  public static func sealRequest(
    for user: String, over sealed: SealRequest, as prover: Prover, at endpoint: Endpoint,
    options: ProofOptions = ProofOptions()
  ) async throws(UserExchangeError) -> ReceivedSealRequest {
    try await cancellable(options) { options throws(UserExchangeError) in
      try sealRequest(for: user, over: sealed, as: prover, at: endpoint, options: options)
    }
  }

  /// Challenges a device, and checks its host code.
  public func challengeDevice(
    with record: Record, as prover: Prover, at endpoint: Endpoint, options: ProofOptions = ProofOptions()
  ) async throws(UserExchangeError) -> DeviceChallenge? {
    try await cancellable(options) { options throws(UserExchangeError) in
      try challengeDevice(with: record, as: prover, at: endpoint, options: options)
    }
  }
}

/// Runs an exchange on a thread of its own, and cancels its proofs with the task.
private func cancellable<Result: Sendable>(
  _ options: ProofOptions, _ body: @escaping @Sendable (ProofOptions) throws(UserExchangeError) -> Result
) async throws(UserExchangeError) -> Result {
  var options = options
  let cancellation = options.cancellation ?? Cancellation()
  options.cancellation = cancellation
  let conditions = options
  let result: Swift.Result<Result, UserExchangeError> = await withTaskCancellationHandler {
    await outcome { () throws(UserExchangeError) in try body(conditions) }
  } onCancel: {
    cancellation.cancel()
  }
  return try result.get()
}

private func onThread<Result: Sendable>(
  _ body: @escaping @Sendable () throws(UserExchangeError) -> Result
) async throws(UserExchangeError) -> Result {
  try await outcome(body).get()
}

private func outcome<Result: Sendable>(
  _ body: @escaping @Sendable () throws(UserExchangeError) -> Result
) async -> Swift.Result<Result, UserExchangeError> {
  await withCheckedContinuation { continuation in
    let isStarted = Thread.detach {
      do throws(UserExchangeError) { continuation.resume(returning: .success(try body())) } catch {
        continuation.resume(returning: .failure(error))
      }
    }
    if !isStarted { continuation.resume(returning: .failure(.exchange(.noThread))) }
  }
}

/// A value without copies that one thread hands to another, which takes it once.
private final class Handed<Value: ~Copyable & Sendable>: Sendable {
  private let value: Mutex<Value?>

  init(_ value: consuming sending Value) { self.value = Mutex(value) }

  func take() -> Value? { value.withLock { $0.take() } }
}
