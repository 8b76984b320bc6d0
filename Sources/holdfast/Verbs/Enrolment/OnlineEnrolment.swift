import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement
import HoldfastOnline
import HoldfastProver

/// The enrolment of this app at an online service.
///
/// The baseline is stored before its evidence is sent, and waits in the state folder until the service has given its final
/// answer. The same command therefore continues an enrolment that was interrupted, or that waits for an operator.
final class OnlineEnrolment {
  let state: String
  let services: OnlineServices
  let carrier: String
  let claims: AppClaims
  let wishes: TokenWishes
  let posture: PostureOptions
  let measuring: MeasuringOptions
  let isReplacing: Bool
  private let folder: ProverFolder

  init(
    state: String, services: OnlineServices, carrier: String, claims: AppClaims, wishes: TokenWishes,
    posture: PostureOptions, measuring: MeasuringOptions, isReplacing: Bool
  ) {
    (self.state, self.services, self.carrier) = (state, services, carrier)
    (self.claims, self.wishes, self.isReplacing) = (claims, wishes, isReplacing)
    (self.posture, self.measuring) = (posture, measuring)
    folder = ProverFolder(path: state)
  }

  /// The service's reasons for which a baseline that is sent again is replaced by a new one.
  private static let reasonsForNewBaseline = ["notFresh", "repeated"]

  /// A baseline with the request that it is for.
  private final class Begun {
    let baseline: Baseline
    var request: WaitingRequest
    let isContinued: Bool

    init(_ baseline: Baseline, _ request: WaitingRequest, isContinued: Bool) {
      (self.baseline, self.request, self.isContinued) = (baseline, request, isContinued)
    }
  }

  /// Enrols for a device: sends the evidence, waits for the token, and stores it.
  ///
  /// - Parameter details: receives what a program should know of a failure, as members of an object.
  func enroll(
    _ device: DeviceDescriptor, _ measurement: LiveMeasurement, details: inout [(String, JSONValue)]
  ) throws(Failure) -> MeasurementToken {
    let pinned = try services.pinned(in: folder)
    var begun = try begin(device.deviceID, measurement)
    var result = try exchange(begun, for: device, at: pinned)
    if begun.isContinued, case .failure(let failure) = result, failure.kind == .refused,
      failure.reasons.contains(where: Self.reasonsForNewBaseline.contains)
    {
      Console.note("the service does not accept the earlier measurement any more; a new one is sent")
      begun = try beginAnew(device.deviceID, measurement, replacing: true)
      result = try exchange(begun, for: device, at: pinned)
    }
    switch result {
    case .token(let token):
      try services.keep(in: folder, isEnrolled: true)
      return try store(token, of: begun, for: device)
    // An enrolment has no such answer.
    case .answer: throw Failure(CarrierProcessFault.garbage, carrier: carrier)
    case .waiting(let request):
      try services.keep(in: folder)
      details = [("request", .string(request.id)), ("service", .string(request.service.description))]
      throw Failure(waitingFor: request, device: device.deviceID)
    case .failure(let failure):
      switch failure.kind {
      case .refused, .requestRefused, .requestExpired:
        details = [
          ("reasons", .array(failure.reasons.map { .string($0) })),
          ("arc", failure.responseCode.map { .string($0) } ?? .null),
        ]
        try services.keep(in: folder)
        folder.removeBegun(configuration: begun.baseline.configuration.encoded(), for: device.deviceID)
      default: break
      }
      throw Failure(failure, pinsIn: services.pins.isEmpty ? state : nil)
    }
  }

  /// Continues the request that waits for the device's token if it was made in the same way; otherwise begins a new one.
  private func begin(_ device: DeviceID, _ measurement: LiveMeasurement) throws(Failure) -> Begun {
    let waiting = try reading(folder) { () throws(StateFolderFault) in try folder.waitingRequest(for: device) }
    guard let waiting else { return try beginAnew(device, measurement, replacing: isReplacing) }
    guard waiting.wishes == wishesAndClaims, waiting.service == nil || known(waiting) != nil else {
      if waiting.service != nil { Console.note("the request that waits was made in another way; a new one is made") }
      return try beginAnew(device, measurement, replacing: true)
    }
    let baseline: Baseline? = try reading(state) { (prover) throws(ProverError) in
      let prover = prover.with(posture, measuring)
      do throws(ProverError) { return try prover.resume(for: device, as: claims, of: measurement) } catch {
        switch error {
        case .state(.usedBaseline), .state(.damaged), .state(.missing), .measurement(.malformedConfiguration):
          return nil
        default: throw error
        }
      }
    }
    guard let baseline else {
      if waiting.service != nil {
        Console.note("the app or its host has changed since the request that waits; a new one is made")
      }
      return try beginAnew(device, measurement, replacing: true)
    }
    return Begun(baseline, waiting, isContinued: true)
  }

  private func beginAnew(
    _ device: DeviceID, _ measurement: LiveMeasurement, replacing: Bool
  ) throws(Failure) -> Begun {
    let request = WaitingRequest(wishes: wishesAndClaims)
    let baseline = try writing(state) { (prover) throws(ProverError) in
      try prover.with(posture, measuring)
        .begin(request, for: device, as: claims, of: measurement, replacing: replacing)
    }
    return Begun(baseline, request, isContinued: false)
  }

  /// Returns a request that waits at one of the services of this run; nil for any other.
  private func known(_ request: WaitingRequest) -> OnlineRequest? {
    guard let id = request.id,
      let address = services.access.addresses.first(where: { $0.description == request.service })
    else { return nil }
    return OnlineRequest(id: id, service: address)
  }

  private var wishesAndClaims: JSONValue {
    var members = wishes.members
    if let subject = claims.subject { members.append(("subject", .string(subject.description))) }
    if let version = claims.version { members.append(("app_version", .string(version.text))) }
    return .object(members)
  }

  /// Has the carrier exchange the evidence for a token. The id of a request that waits is recorded as soon as it is known.
  private func exchange(
    _ begun: Begun, for device: DeviceDescriptor, at services: [PinnedService]
  ) throws(Failure) -> CarrierResult {
    let (access, timeoutSeconds) = (self.services.access, self.services.timeoutSeconds)
    let task = CarrierTaskLine.encode(
      services: services, authorities: access.authorities, withSystem: access.isTrustingSystem,
      attempts: access.attempts, timeoutSeconds: timeoutSeconds, evidence: begun.baseline.evidence,
      device: device.json, invitation: self.services.invitation, wishes: wishes, request: known(begun.request))
    var notes: [String] = []
    var fault: StateFolderFault?
    do throws(CarrierProcessFault) {
      return try CarrierProcess.carryOut(task, by: carrier, timeoutSeconds: timeoutSeconds) { progress in
        let note: String
        switch progress {
        case .attesting, .asking: return true
        case .failed(let failure): note = "\(Failure(failure, pinsIn: nil).message); trying again"
        case .waiting(let request, _):
          note = "request \(request.id) waits for a decision of the operator of \(request.service)"
          do throws(StateFolderFault) { try record(request, of: begun, for: device.deviceID) } catch { fault = error }
        }
        if !notes.contains(note) { Console.note(note) }
        notes.append(note)
        return fault == nil
      }
    } catch {
      if let fault { throw Failure(fault, folder: state) }
      throw Failure(error, carrier: carrier)
    }
  }

  /// Records that a request waits, so that a later run continues it.
  private func record(
    _ request: OnlineRequest, of begun: Begun, for device: DeviceID
  ) throws(StateFolderFault) {
    guard begun.request.id != request.id || begun.request.service != request.service.description else { return }
    begun.request = WaitingRequest(
      wishes: begun.request.wishes, service: request.service.description, id: request.id)
    try folder.record(begun.request, configuration: begun.baseline.configuration.encoded(), for: device)
  }

  /// Checks the token as far as anyone but the device can, and stores it.
  private func store(
    _ issued: OnlineToken, of begun: Begun, for device: DeviceDescriptor
  ) throws(Failure) -> MeasurementToken {
    let token = MeasurementToken(
      issued.bytes, report: IssuanceReport(issued.claims), terms: issued.terms.map { Array($0.utf8) },
      service: issued.service)
    guard token.report != nil, token.isAddressed(to: device), (token.encoding == .cose) == (issued.format == "cose")
    else {
      let detail = token.report != nil && !token.isAddressed(to: device) ? "its token is not for this device" : nil
      throw Failure(
        CarrierFailure(.malformedAnswer, service: issued.service.description, detail: detail), pinsIn: nil)
    }
    try writing(state) { (prover) throws(ProverError) in
      try prover.store(token, of: begun.baseline, for: device, replacing: isReplacing)
    }
    folder.removeBegun(configuration: begun.baseline.configuration.encoded(), for: device.deviceID)
    return token
  }
}
