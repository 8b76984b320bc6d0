import HoldfastAttack
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastProver
import HoldfastTransport
import Synchronization

/// Posing as a device.
extension AttackVerb {
  /// Deceives the provers that connect, until a signal ends it or there were enough of them.
  func deceive(at endpoint: Endpoint) throws(Failure) {
    guard user == nil, otp == nil, laterOtp == nil, service == nil, junit == nil, !destructive, !compatibility else {
      throw Failure(
        .usage,
        "--listen excludes --user, --otp, --later-otp, --service, --junit, --destructive and --compatibility")
    }
    if let connections, connections < 1 { throw Failure(.usage, "--connections must be at least 1") }
    let identity = try identity()
    let impostor = Impostor(
      as: identity.deviceID, keyID: identity.keyID, deceptions: try selected(Deception.all.map { ($0.id, $0) }),
      timeoutMilliseconds: try waiting.milliseconds())
    TerminationSignals.hold()
    guard let log = LogOutput(json: false) else { throw Failure(ServerFault.noDescriptors) }
    defer { log.finish(withinMilliseconds: 500) }
    let results = Mutex<[DeceptionResult]>([])
    let isJSON = output.json
    do throws(TransportError) {
      let listener = try Listener(endpoint)
      defer { listener.close() }
      TerminationSignals.whenRaised { listener.cancel() }
      // No link is ended because its host has proved nothing: nobody can.
      let presence = BluetoothPresence(
        of: [listener.endpoint], isPairing: pair, standing: { _ in .proved }, log: log)
      defer { withExtendedLifetime(presence) {} }
      Console.note("listening at \(listener.endpoint), as device \(hexadecimal(identity.deviceID))")
      try impostor.run(at: listener, connections: connections) { result in
        results.withLock { $0.append(result) }
        if isJSON { Console.result(result.json) } else { for line in result.lines { Console.result(line) } }
      }
    } catch { throw Failure(error, endpoint: endpoint) }
    let all = results.withLock { $0 }
    let unsound = all.filter { $0.judgement == .unsound }
    if !output.json { Console.result("\(all.count) connections, \(unsound.count) of them unsound") }
    guard unsound.isEmpty else {
      throw Failure(.malformed, "a prover is unsound: \(unsound.map(\.deception.id).joined(separator: ", "))")
        .afterResult()
    }
  }

  /// Returns the device as which the adversary poses: the one of `--device` or `--state`. Without both, it is one that nobody knows.
  private func identity() throws(Failure) -> (deviceID: DeviceID, keyID: KeyID) {
    if let state {
      let expected = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
      let entries = try reading(state) { (prover) throws(ProverError) in try prover.status(device: expected) }
      for case .success(let enrolment) in entries.map(\.enrolment) {
        return (enrolment.descriptor.deviceID, enrolment.descriptor.keyID)
      }
    } else if let device {
      let descriptor = try DeviceDescriptor(file: device)
      return (descriptor.deviceID, descriptor.keyID)
    }
    Console.warning("without --state or --device, the impostor poses as a device that nobody knows")
    return (DeviceID(), KeyID())
  }
}

extension DeceptionResult {
  /// The result for a person.
  fileprivate var lines: [String] {
    let last =
      if case .notTried(let reason) = judgement { "not tried: \(reason)" } else { "observed: \(observed)" }
    return ["\(judgement.word.padded(9)) \(deception.id)"]
      + ["did: \(deception.did)", "due: \(deception.due)", last].map { "          \($0)" }
  }

  fileprivate var json: JSONValue {
    var members: [(String, JSONValue)] = [
      ("id", .string(deception.id)), ("did", .string(deception.did)), ("due", .string(deception.due)),
      ("observed", observed.isEmpty ? .null : .string(observed)), ("judgement", .string(judgement.word)),
    ]
    if case .notTried(let reason) = judgement { members.append(("reason", .string(reason))) }
    return .object(members)
  }
}
