import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOnline
import HoldfastProver

/// The options for asking an online service after the enrolment. The pins that the state folder keeps count.
struct ServiceCallOptions: ParsableArguments {
  @Option(
    help: "A file with the certificate authorities of the service. By default, those of this host.", completion: .file()
  )
  var ca: String?

  @Option(help: "Seconds to wait for the service, 1 to 86400. By default, 20.")
  var timeout: UInt64?

  /// Checks that nothing is given for a service that is not asked.
  func checkUnused(without option: String) throws(Failure) {
    guard ca == nil, timeout == nil else { throw Failure(.usage, "--ca and --timeout need \(option)") }
  }

  /// The value of an option that names services for those that the state folder keeps.
  static let kept = "default"

  /// Has the carrier send a request to the first service that answers, and returns the answer.
  ///
  /// - Parameters:
  ///   - services: The value of the option `name`: one to eight URLs with commas between them, or ``kept``.
  ///   - state: The state folder, whose services and pins count.
  ///   - issuer: The service that issued the token in question; nil if it is not known.
  func ask(
    _ operation: ServiceOperation, _ body: JSONValue? = nil, at services: String, of name: String, state: String,
    issuer: ServiceAddress? = nil
  ) throws(Failure) -> JSONValue {
    try self.services(services, of: name, state: state, issuer: issuer).ask(
      operation, body, timeoutSeconds: try timeoutSeconds(), state: state)
  }

  /// Returns the seconds to wait for the service.
  func timeoutSeconds() throws(Failure) -> UInt64 {
    let timeout = timeout ?? 20
    guard CarrierTaskLine.timeoutRange.contains(timeout) else {
      throw Failure(.usage, "--timeout must be from 1 to 86400 seconds")
    }
    return timeout
  }

  /// Returns the services that an option names, and how they are reached; for the parameters see `ask`.
  func services(
    _ services: String, of name: String, state: String, issuer: ServiceAddress?
  ) throws(Failure) -> OnlineServices {
    let known = try KnownServices(in: ProverFolder(path: state))
    let addresses = try addresses(services, of: name, known, state: state, issuer: issuer)
    var access = known.access(to: addresses) ?? ServiceAccess(addresses)
    if let ca { (access.authorities, access.isTrustingSystem) = (ca, false) }
    access.addresses = addresses
    try checkAuthorities(access.authorities)
    return OnlineServices(access)
  }

  private func addresses(
    _ services: String, of name: String, _ known: KnownServices, state: String, issuer: ServiceAddress?
  ) throws(Failure) -> [ServiceAddress] {
    guard services == Self.kept else {
      do throws(ServiceAddressFault) { return try ServiceAddress.list(services) } catch {
        throw Failure(error, in: name)
      }
    }
    let usual = known.usual?.addresses ?? []
    // Services that are usually tried together know the same tokens; any other knows only those that it issued.
    if let issuer, !usual.contains(issuer) { return [issuer] }
    guard !usual.isEmpty else {
      throw Failure(
        .usage, "\(name) needs a URL, because \(state) keeps no service",
        hint: "it keeps the service of the last enrolment: holdfast enroll --service URL")
    }
    return usual
  }

  /// Returns a function that carries a question about a token to a service, for ``Prover``. It throws failures.
  func exchange(
    _ operation: ServiceOperation, at services: String, state: String, issuer: ServiceAddress?
  ) -> (EnrolmentQuestion) throws -> [UInt8] {
    { question in
      try ask(operation, question.json, at: services, of: "--service", state: state, issuer: issuer).compact()
    }
  }
}

extension OnlineServices {
  /// Has the carrier send a request to the first service that answers, and returns the answer.
  ///
  /// - Parameters:
  ///   - values: The values of the operation's parameters.
  ///   - state: The state folder, whose pins count.
  func ask(
    _ operation: ServiceOperation, _ body: JSONValue? = nil, values: [String] = [], timeoutSeconds: UInt64,
    state: String
  ) throws(Failure) -> JSONValue {
    switch try result(of: operation, body, values: values, timeoutSeconds: timeoutSeconds, state: state) {
    case .success(let answer): return answer
    case .failure(let failure): throw Failure(failure, pinsIn: state)
    }
  }

  /// As ``ask(_:_:values:timeoutSeconds:state:)``, but nil if the service is of an earlier version, which does not have the operation.
  func askIfOffered(
    _ operation: ServiceOperation, _ body: JSONValue, timeoutSeconds: UInt64, state: String
  ) throws(Failure) -> JSONValue? {
    switch try result(of: operation, body, values: [], timeoutSeconds: timeoutSeconds, state: state) {
    case .success(let answer): return answer
    case .failure(let failure) where failure.status == 404: return nil
    case .failure(let failure): throw Failure(failure, pinsIn: state)
    }
  }

  private func result(
    of operation: ServiceOperation, _ body: JSONValue?, values: [String], timeoutSeconds: UInt64, state: String
  ) throws(Failure) -> Result<JSONValue, CarrierFailure> {
    let pinned = try pinned(in: ProverFolder(path: state))
    let carrier = try CarrierProcess.path()
    guard let call = ServiceCall(operation, body: body, values: values, attemptCount: 2) else {
      throw Failure(CarrierProcessFault.garbage, carrier: carrier)
    }
    let task = CarrierTaskLine.encode(
      services: pinned, authorities: access.authorities, withSystem: access.isTrustingSystem,
      timeoutSeconds: timeoutSeconds, call: call)
    let result: CarrierResult
    do throws(CarrierProcessFault) {
      result = try CarrierProcess.carryOut(
        task, by: carrier, timeoutSeconds: timeoutSeconds, lineByteLimit: operation.answerByteLimit
      ) { _ in true }
    } catch { throw Failure(error, carrier: carrier) }
    switch result {
    case .answer(let answer): return .success(answer.value)
    case .failure(let failure): return .failure(failure)
    case .token, .waiting: throw Failure(CarrierProcessFault.garbage, carrier: carrier)
    }
  }
}
