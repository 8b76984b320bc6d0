import HoldfastCore
import HoldfastFormats
import HoldfastOnline
import HoldfastOpenSSL
import HoldfastProver

extension HoldfastClient {
  /// The wishes of a fetch, which are granted after the attestation.
  struct Wish {
    var domain: APIDomain?
    var payload: JSONValue?
    var strings = false
  }

  /// The answer to a fetch, with the evidence on which it is based.
  struct Attested {
    let answer: FetchAnswer
    let evidence: TakenEvidence
    /// The moment before the service was asked.
    let asked: Moment
    /// ``ClientState/refusalCount`` at that moment.
    let refusalCount: Int
  }

  /// A failed fetch.
  struct NoAnswer: Error {
    let result: FetchResult
    init(_ result: FetchResult) { self.result = result }
    init(_ status: FetchStatus) { result = FetchResult(status) }
  }

  /// Has the service attest the app, and takes over what the answer says.
  ///
  /// - Parameter keep: stores what counts only with this attestation. It is called only if none of the statements has changed
  ///   meanwhile.
  func attest(
    _ wish: Wish, keep: (inout ClientState, Attested) -> Void = { _, _ in }
  ) throws(NoAnswer) -> Attested {
    let (statements, generation, refusalCount) = state.withLock { ($0.statements, $0.generation, $0.refusalCount) }
    let evidence = try taking { try environment.measurer.takeEvidence(claims(statements)) }
    var members = members(of: evidence, statements)
    if let domain = wish.domain { members.append(("domain", .string(domain.name))) }
    if let payload = wish.payload { members.append(("payload", payload)) }
    if wish.strings { members.append(("strings", .bool(true))) }
    let asked = environment.now()
    let value = try call(.fetch, members)
    guard let answer = FetchAnswer(value), wish.domain == nil || answer.token != nil,
      wish.payload == nil || answer.custom != nil, !wish.strings || answer.strings != nil
    else { throw NoAnswer(.noService) }
    let attested = Attested(answer: answer, evidence: evidence, asked: asked, refusalCount: refusalCount)
    takeOver(attested, generation: generation, keep)
    return attested
  }

  /// Has the service attest the app for a device, and returns the token for the backend with the measurement configuration.
  func attest(for device: DeviceDescriptor, at domain: APIDomain) throws(NoAnswer) -> FetchResult {
    let statements = state.withLock { $0.statements }
    let evidence = try taking { try environment.measurer.beginBaseline(for: device, claims(statements)) }
    var members = members(of: evidence, statements)
    members += [("device", device.json), ("domain", .string(domain.name))]
    do throws(NoAnswer) {
      guard let answer = AttestationAnswer(try call(.attest, members)) else { throw NoAnswer(.noService) }
      state.withLock { $0.hasAnswer = true }
      var result = FetchResult(.success)
      (result.token, result.arc) = (answer.token, answer.responseCode)
      result.measurementConfig = evidence.configuration
      return result
    } catch {
      environment.measurer.removeBaseline(of: evidence, for: device)
      throw error
    }
  }

  private func claims(_ statements: AttestationStatements) -> AppClaims {
    var claims = options.app
    if let property = statements.userProperty { claims.userProperty = property }
    guard statements.reportsChanges else { return claims }
    let room = max(Evidence.maximumPropertyCount - claims.properties.count, 0)
    let changes = environment.measurer.changedComponents().compactMap { BoundedText<128>("changed:" + $0) }
    claims.properties += changes.prefix(room)
    return claims
  }

  private func members(of evidence: TakenEvidence, _ statements: AttestationStatements) -> [(String, JSONValue)] {
    var members: [(String, JSONValue)] = [("evidence", .string(paddedBase64(evidence.bytes.span)))]
    if let hash = statements.dataHash { members.append(("hash", .string(paddedBase64(hash.bytes)))) }
    if let key = statements.developmentKey, let code = try? key.code(for: evidence.bytes) {
      members.append(("development", .string(paddedBase64(code.bytes))))
    }
    return members
  }

  private func taking(_ body: () throws -> TakenEvidence) throws(NoAnswer) -> TakenEvidence {
    do { return try body() } catch {
      options.log("holdfast: the app cannot be measured: \(error)")
      throw NoAnswer(.internalError)
    }
  }

  /// Makes a call, and returns its answer. If a fetch is refused, the app loses what it was given before; an attestation for a device
  /// may be refused because of the device.
  private func call(
    _ operation: ServiceOperation, _ members: [(String, JSONValue)]
  ) throws(NoAnswer) -> JSONValue {
    guard let call = ServiceCall(operation, body: .object(members), attemptCount: Self.attemptCount) else {
      throw NoAnswer(.internalError)
    }
    do throws(CallFailure) {
      let seconds = min(max(options.timeoutSeconds, 1), 600)
      return try environment.caller.make(call, at: services, timeoutSeconds: seconds).value
    } catch {
      var result = FetchResult(FetchStatus(error, hasNetwork: environment.hasNetwork))
      if case .service(let failure) = error {
        (result.arc, result.help) = (failure.responseCode ?? "", failure.help)
        if result.status == .rejected { result.rejectionReasons = failure.reasons }
      }
      if result.status == .rejected, operation == .fetch { takeAway() }
      throw NoAnswer(result)
    }
  }

  /// Takes over an answer: the id of this host, the key for messages, and that there is a newer configuration.
  private func takeOver(
    _ attested: Attested, generation: Int, _ keep: (inout ClientState, Attested) -> Void
  ) {
    let answer = attested.answer
    let (hasNewID, isOutdated) = state.withLock { state in
      state.hasAnswer = true
      state.forcedPins = answer.forcedPins
      let hasNewID = state.deviceID != answer.deviceID
      state.deviceID = answer.deviceID
      // Another thread may have been refused since this one asked; then nothing is given back.
      if state.refusalCount == attested.refusalCount {
        state.messageKey = answer.messageKey
        if state.generation == generation { keep(&state, attested) }
      }
      let isOutdated = state.configuration.map { $0.revision < answer.revision } ?? true
      if !isOutdated { state.configurationStatus = .success }
      return (hasNewID, isOutdated)
    }
    if hasNewID { try? folder.keep(deviceID: answer.deviceID) }
    if isOutdated { updateConfiguration(announcing: true, of: answer.revision) }
  }

  /// Forgets what only an app has that was attested. Its signatures over messages are wrong from now on, but look like others.
  private func takeAway() {
    let key = try? MessageKey.random()
    state.withLock { $0.refusalCount += 1 }
    try? stringsFile.remove()
    state.withLock { state in
      state.tokens.removeAll()
      state.strings = nil
      state.messageKey = state.configuration?.hasMessageSigning == false ? nil : key
    }
  }

  /// The services to ask, with the pins of their keys: those of the newest configuration, and after them those of the initial one.
  private var services: [PinnedService] {
    var addresses = state.withLock { $0.configuration?.services ?? [] }
    for address in account.services where !addresses.contains(address) { addresses.append(address) }
    return addresses.prefix(ServiceAddress.countLimit).map { PinnedService($0, pins: account.pins) }
  }

  /// Fetches the newest configuration from a service, for at most two seconds, and notes the outcome for results. One
  /// that the account's key did not sign, or of a lower revision, changes nothing.
  ///
  /// - Parameters:
  ///   - announcing: whether results of fetches say that there is a new configuration.
  ///   - revision: the revision that a service has announced.
  func updateConfiguration(announcing: Bool, of revision: UInt64 = 0) {
    guard let call = ServiceCall(.configuration, attemptCount: Self.attemptCount) else { return }
    let status: FetchStatus
    do throws(CallFailure) {
      let text = try environment.caller.make(call, at: services, timeoutSeconds: Self.startSeconds).value.text
      status = takeConfiguration(text, announcing: announcing)
    } catch {
      status = FetchStatus(error, hasNetwork: environment.hasNetwork)
      options.log("holdfast: configuration: \(status.rawValue)")
    }
    state.withLock { state in
      let isNewest = state.configuration.map { $0.revision >= revision } ?? false
      // Another fetch may have got the announced one meanwhile.
      if isNewest, revision > 0 {
        state.configurationStatus = .success
      } else {
        state.configurationStatus = status == .success && !isNewest ? .noService : status
      }
    }
  }

  /// Stores a configuration that a service gave, if it is newer than the present one.
  private func takeConfiguration(_ text: String?, announcing: Bool) -> FetchStatus {
    guard let received = text.flatMap({ AccountConfiguration($0, of: account) }) else {
      options.log("holdfast: configuration: it is not one that the account's key signed")
      return .noService
    }
    func isNewer(_ configuration: AccountConfiguration, than state: ClientState) -> Bool {
      state.configuration.map { $0.revision < configuration.revision } ?? true
    }
    let isNewest = state.withLock { state in
      state.hasAnswer = true
      return isNewer(received, than: state)
    }
    guard isNewest else { return .success }
    // Without a disk, it counts at least for this process.
    let newest = (try? folder.keep(received, of: account)) ?? received
    state.withLock { state in
      // Another thread may have been faster.
      guard isNewer(newest, than: state) else { return }
      state.configuration = newest
      if announcing { state.isConfigurationChanged = true }
    }
    return .success
  }

  /// Completes a result with what the account demands, and logs a failure.
  func finished(_ result: FetchResult, _ what: String) -> FetchResult {
    var result = result
    state.withLock {
      (result.isConfigChanged, result.isForceApplyPins) = ($0.isConfigurationChanged, $0.hasForcedPins)
      result.configurationStatus = $0.configurationStatus
    }
    guard result.status != .success else { return result }
    let reasons = result.rejectionReasons.isEmpty ? "" : " (\(result.rejectionReasons.joined(separator: ", ")))"
    let code = result.arc.isEmpty ? "" : ", code \(result.arc)"
    options.log("holdfast: \(what): \(result.status.rawValue)\(reasons)\(code)")
    return result
  }
}
