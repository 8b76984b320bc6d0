import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// One call for an app that only wants its command carried out.
extension Prover {
  /// Proves to a device, and enrols for it first if it is necessary: if it is not enrolled, or its enrolment has expired, has reached
  /// its offline limit, or is damaged.
  ///
  /// A device that denies the proof is not a reason to enrol: the denial may be final, and evidence goes out only for a reason that
  /// the app can see itself. After an update of the app, call ``enroll(for:as:replacing:exchange:)``.
  ///
  /// - Parameters:
  ///   - request: the command, its parameters, and codes of a user.
  ///   - endpoint: the address at which the device serves.
  ///   - device: the description of the device, from its owner. Only this device may answer.
  ///   - app: the app's statements about itself, for an enrolment.
  ///   - options: the time of the proof, and how the call is watched and ended. ``ProofOptions/device`` does not count.
  ///   - exchange: carries the evidence to the attestation service, as for ``enroll(for:as:replacing:exchange:)``; called at most
  ///     once.
  /// - Throws: the errors of ``enroll(for:as:replacing:exchange:)`` and `prove(_:at:options:)`. An enrolment that was made stays.
  public func prove(
    _ request: borrowing Request, at endpoint: Endpoint, enrollingFor device: DeviceDescriptor,
    as app: AppClaims = AppClaims(), options: ProofOptions = ProofOptions(),
    exchange: (_ evidence: [UInt8]) throws -> MeasurementToken
  ) throws -> ProofOutcome {
    try enrolIfNecessary(for: device, as: app, options, exchange: exchange)
    var options = options
    options.device = device.deviceID
    return try prove(request, at: endpoint, options: options)
  }

  /// The same over a channel that is already connected to the device.
  public func prove(
    _ request: borrowing Request, over channel: any MessageChannel, enrollingFor device: DeviceDescriptor,
    as app: AppClaims = AppClaims(), options: ProofOptions = ProofOptions(),
    exchange: (_ evidence: [UInt8]) throws -> MeasurementToken
  ) throws -> ProofOutcome {
    try enrolIfNecessary(for: device, as: app, options, exchange: exchange)
    var options = options
    options.device = device.deviceID
    return try prove(request, over: channel, options: options)
  }

  private func enrolIfNecessary(
    for device: DeviceDescriptor, as app: AppClaims, _ options: ProofOptions,
    exchange: (_ evidence: [UInt8]) throws -> MeasurementToken
  ) throws {
    guard try needsEnrolment(for: device) else { return }
    if options.cancellation?.isCancelled == true { throw ProverError.cancelled }
    options.progress(.enrolling(device.deviceID))
    try enroll(for: device, as: app, replacing: true, exchange: exchange)
  }

  /// Returns whether no proof to a device can succeed without another enrolment, as far as it is known here.
  ///
  /// - Throws: ``ProverError/state(_:)`` if the folder is of another kind, or its files belong to another user.
  public func needsEnrolment(for device: DeviceDescriptor) throws(ProverError) -> Bool {
    let states: [EnrolmentState]
    do throws(ProverError) { states = try status(device: device.deviceID, now: host.unixSeconds()) } catch {
      switch error {
      case .state(.nothingEnrolled), .state(.notEnrolled): return true
      default: throw error
      }
    }
    guard let state = states.first else { return true }
    switch state.validity {
    case .expired, .offlineLimit, .damaged: return true
    case .unreadable:
      if case .failure(let fault) = state.enrolment { throw .state(fault) }
      return false
    case .valid, .unknown, .notCompliant:
      // Its owner has set the device up again.
      return (try? state.enrolment.get())?.descriptor != device
    }
  }

  /// Proves to a device, and reports the steps as a sequence that ends with the outcome. When the task that reads it is cancelled, the
  /// proof ends as ``Cancellation`` says.
  ///
  /// - Returns: the steps. The sequence ends with the errors of `prove(_:at:options:)`.
  public func steps(
    of request: borrowing Request, at endpoint: Endpoint, options: ProofOptions = ProofOptions()
  ) -> AsyncThrowingStream<ProofStep, any Error> {
    let request = Shared(request.copy())
    let (stream, continuation) = AsyncThrowingStream<ProofStep, any Error>.makeStream()
    var options = options
    let (cancellation, progress) = (options.cancellation ?? Cancellation(), options.progress)
    options.cancellation = cancellation
    options.progress = { stage in
      progress(stage)
      continuation.yield(.stage(stage))
    }
    continuation.onTermination = { end in
      if case .cancelled = end { cancellation.cancel() }
    }
    let conditions = options
    let isStarted = Thread.detach {
      do throws(ProverError) {
        continuation.yield(.outcome(try prove(request.value, at: endpoint, options: conditions)))
        continuation.finish()
      } catch { continuation.finish(throwing: error) }
    }
    if !isStarted { continuation.finish(throwing: ProverError.noThread) }
    return stream
  }
}

/// A step of a proof.
public enum ProofStep: Sendable {
  /// A stage begins.
  case stage(ProofStage)
  /// The proof has ended with the device's verdict, which may be a denial.
  case outcome(ProofOutcome)
}
