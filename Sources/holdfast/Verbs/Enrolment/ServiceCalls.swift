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

  /// Has the carrier send a request to the first service that answers, and returns the answer.
  ///
  /// - Parameters:
  ///   - services: The value of the option `name`: one to eight URLs with commas between them.
  ///   - state: The state folder, whose pins count.
  func ask(
    _ operation: ServiceOperation, _ body: JSONValue? = nil, at services: String, of name: String, state: String
  ) throws(Failure) -> JSONValue {
    let timeout = timeout ?? 20
    guard CarrierTaskLine.timeoutRange.contains(timeout) else {
      throw Failure(.usage, "--timeout must be from 1 to 86400 seconds")
    }
    let addresses: [ServiceAddress]
    do throws(ServiceAddressFault) { addresses = try ServiceAddress.list(services) } catch {
      throw Failure(error, in: name)
    }
    if let ca { do throws(FileError) { _ = try Files.readFile(at: ca, limit: 1 << 20) } catch { throw Failure(error) } }
    let online = OnlineServices(
      addresses: addresses, invitation: nil, authorities: ca, pins: [], isReplacingPins: false, timeoutSeconds: timeout)
    let pinned = try online.pinned(in: ProverFolder(path: state))
    let carrier = try CarrierProcess.path()
    guard let call = ServiceCall(operation, body: body, attemptCount: 2) else {
      throw Failure(CarrierProcessFault.garbage, carrier: carrier)
    }
    let task = CarrierTaskLine.encode(services: pinned, authorities: ca, timeoutSeconds: timeout, call: call)
    let result: CarrierResult
    do throws(CarrierProcessFault) {
      result = try CarrierProcess.carryOut(
        task, by: carrier, timeoutSeconds: timeout, lineByteLimit: operation.answerByteLimit
      ) { _ in true }
    } catch { throw Failure(error, carrier: carrier) }
    switch result {
    case .answer(let answer): return answer.value
    case .failure(let failure):
      throw Failure(failure, pinsIn: pinned.contains { !$0.pins.isEmpty } ? state : nil)
    case .token, .waiting: throw Failure(CarrierProcessFault.garbage, carrier: carrier)
    }
  }

  /// Asks a service about a device's token, or tells it that the prover leaves.
  ///
  /// - Returns: The state of the token, as the service names it, and its terms; nil if the enrolment does not say which token it has.
  func askAboutToken(
    _ operation: ServiceOperation, for device: DeviceID, at services: String, state: String
  ) throws(Failure) -> (status: String, terms: [UInt8]?)? {
    let (token, evidence) = try reading(state) { (prover) throws(ProverError) in
      let token = try prover.tokenID(for: device)
      return (token, token == nil ? [] : try prover.identifyingEvidence())
    }
    guard let token else { return nil }
    var text: [UInt8] = []
    text.append(asPaddedBase64: evidence.span)
    let answer = try ask(
      operation,
      .object([
        ("evidence", .string(String(decoding: text, as: UTF8.self))), ("token", .string(hexadecimal(token))),
      ]), at: services, of: "--service", state: state)
    guard answer["token"]?.text == hexadecimal(token), let status = answer["status"]?.text,
      (1...32).contains(status.utf8.count), answer["terms"].map({ $0.text != nil }) ?? true
    else { throw Failure(CarrierFailure(.malformedAnswer), pinsIn: nil) }
    return (status, answer["terms"]?.text.map { Array($0.utf8) })
  }
}
