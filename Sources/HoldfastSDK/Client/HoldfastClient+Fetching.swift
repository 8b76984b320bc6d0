import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastProver

extension HoldfastClient {
  /// Fetches a token for an API domain, to send with the next request to that API.
  ///
  /// A token is kept until shortly before it expires. Each call repeats the quick integrity checks: if a debugger, an injection or
  /// a preloaded library has appeared since the attestation, all tokens are dropped, and the app is attested anew. Otherwise a call
  /// with a kept token makes no request. Several calls at once share one request.
  ///
  /// A request goes to the account's services in turn, each at most three times, for at most ``ClientOptions/timeoutSeconds``.
  ///
  /// Source: Approov, `fetchApproovTokenAndWait`, `fetchTokenAndWait`.
  ///
  /// - Parameter domain: the name of the API domain, or an `https` URL with it.
  public func fetchToken(for domain: String) -> FetchResult {
    guard let domain = APIDomain(domain) else { return finished(FetchResult(.badURL), "token") }
    let generation = state.withLock { $0.generation }
    let result = flights.share("\(generation) \(domain.name)") {
      let now = environment.now()
      if let checks = try? environment.measurer.integrityChecks(),
        let kept = state.withLock({ $0.tokens.result(for: domain.name, checks: checks, now: now) })
      {
        return kept
      }
      return attestedToken(for: domain)
    }
    return finished(result, "token for \(domain.name)")
  }

  private func attestedToken(for domain: APIDomain) -> FetchResult {
    func result(_ attested: Attested) -> FetchResult {
      var result = FetchResult(.success)
      (result.token, result.arc) = (attested.answer.token?.jwt.text ?? "", attested.answer.responseCode)
      return result
    }
    let asked = environment.now()
    do throws(NoAnswer) {
      return result(
        try attest(Wish(domain: domain)) { state, attested in
          guard let token = attested.answer.token else { return }
          state.tokens.keep(
            result(attested), token, for: domain.name, asked: attested.asked, checks: attested.evidence.checks)
        })
    } catch {
      if [.unknownURL, .unprotectedURL].contains(error.result.status) {
        state.withLock { $0.tokens.keep(absence: error.result.status, for: domain.name, asked: asked) }
      }
      return error.result
    }
  }

  /// Fetches a token with a measurement for a device. It is encrypted to the backend, which issues the device's measurement token
  /// for it; store that with ``prover``, `accept(_:for:replacing:)`.
  ///
  /// Each call measures and asks the service. The baseline waits in the prover's state folder for its measurement token, and
  /// replaces one that waits for the same device.
  ///
  /// Source: Approov, `fetchTokenAndWait` with `?measurement`.
  ///
  /// - Parameters:
  ///   - domain: the name of an API domain that takes measurements, or an `https` URL with it.
  ///   - device: the description of the device, from its owner.
  /// - Returns: the result, with ``FetchResult/measurementConfig`` after success.
  public func fetchToken(for domain: String, measuringFor device: DeviceDescriptor) -> FetchResult {
    guard let domain = APIDomain(domain) else { return finished(FetchResult(.badURL), "measurement") }
    let result: FetchResult
    do throws(NoAnswer) { result = try attest(for: device, at: domain) } catch { result = error.result }
    return finished(result, "measurement for \(domain.name)")
  }

  /// Fetches a JWT with claims of the app, which the service signs after the attestation. It is not kept.
  ///
  /// Source: Approov, `fetchCustomJWTAndWait`.
  ///
  /// - Parameter payload: a JSON object, at most 4096 bytes without white space, of at most 14 levels, with integers up to 2^53 - 1 as
  ///   its only numbers, without the claims `iss`, `iat`, `exp`, `did` and `arc`, which the service sets.
  /// - Returns: the result, with the JWT as ``FetchResult/token`` after success.
  public func fetchCustomJWT(payload: String) -> FetchResult {
    guard let payload = Self.payload(payload) else { return finished(FetchResult(.badPayload), "custom JWT") }
    var result = FetchResult(.success)
    do throws(NoAnswer) {
      let answer = try attest(Wish(payload: payload)).answer
      (result.token, result.arc) = (answer.custom?.text ?? "", answer.responseCode)
    } catch { result = error.result }
    return finished(result, "custom JWT")
  }

  private static func payload(_ text: String) -> JSONValue? {
    guard let value = try? JSONValue(parsing: Array(text.utf8), byteLimit: 1 << 16), CustomPayload.canSign(value) else {
      return nil
    }
    return value
  }
}

/// The fetches for tasks. They wait without blocking a thread of the cooperative pool.
extension HoldfastClient {
  /// Fetches a token for an API domain from a task; see the function of the same name that blocks.
  ///
  /// Source: Approov, `fetchApproovToken`, `fetchToken`.
  public func fetchToken(for domain: String) async -> FetchResult {
    await onThread { self.fetchToken(for: domain) }
  }

  /// Fetches a token with a measurement for a device from a task; see the function of the same name that blocks.
  public func fetchToken(for domain: String, measuringFor device: DeviceDescriptor) async -> FetchResult {
    await onThread { self.fetchToken(for: domain, measuringFor: device) }
  }

  /// Fetches or changes a secure string from a task; see the function of the same name that blocks.
  ///
  /// Source: Approov, `fetchSecureString`.
  public func fetchSecureString(_ name: String, newDefinition: String? = nil) async -> FetchResult {
    await onThread { self.fetchSecureString(name, newDefinition: newDefinition) }
  }

  /// Fetches a custom JWT from a task; see the function of the same name that blocks.
  ///
  /// Source: Approov, `fetchCustomJWT`.
  public func fetchCustomJWT(payload: String) async -> FetchResult {
    await onThread { self.fetchCustomJWT(payload: payload) }
  }

  private func onThread(_ body: @escaping @Sendable () -> FetchResult) async -> FetchResult {
    await withCheckedContinuation { continuation in
      let isStarted = Thread.detach { continuation.resume(returning: body()) }
      if !isStarted { continuation.resume(returning: finished(FetchResult(.internalError), "fetch")) }
    }
  }
}
