import HoldfastCore
import HoldfastDevice
import HoldfastFormats

extension ExternalActuator {
  /// Starts the actuator of a device that is served. Its events become lines of the log.
  static func started(
    at address: ActuatorAddress, timeoutMilliseconds: Int, log: LogOutput
  ) throws(Failure) -> ExternalActuator {
    do throws(ActuatorStartFault) {
      return try ExternalActuator(at: address, timeoutMilliseconds: timeoutMilliseconds) { log.write($0.line) }
    } catch { throw Failure(error, actuator: address) }
  }
}

extension DeviceFolder {
  /// Checks that the policy names no command that neither the device nor `actuator` carries out. An invalid policy names none.
  func checkCommands<Machine: Actuator>(
    of actuator: Machine, named name: String, _ ledger: Ledger
  ) throws(Failure) {
    let reading = try policyReading(ledger)
    guard let command = reading.policy.commandsNotCarriedOut(by: actuator).first else { return }
    throw Failure(
      .malformed, "the policy allows \(command.description.quoted), but \(name) does not carry it out",
      hint: "remove the command from \(reading.file.rawValue), or use an actuator that carries it out")
  }
}

extension ActuatorNotice {
  /// The log line for the person who runs the device.
  fileprivate var line: LogLine {
    switch self {
    case .started(let address, let count):
      line("actuator", "\(address) is ready for \(count) commands", address, ("commands", .number(UInt64(count))))
    case .notStarted(let address, let fault):
      line("warning", "warning: \(Failure(fault, actuator: address).message); the device tries again", address)
    case .lost(let address, let reason, let end):
      line(
        "warning",
        "warning: \(address) was lost (\(reason.name)\(end.map { ", \($0.text)" } ?? "")), and is started again",
        address, ("reason", .word(reason.name)))
    case .discarded(let address, let sequence):
      line(
        "warning", "warning: a late answer of \(address), to command \(sequence), was discarded", address,
        ("sequence", .number(sequence)))
    }
  }

  private func line(
    _ event: String, _ sentence: String, _ address: ActuatorAddress, _ members: (String, NamedValue)...
  ) -> LogLine {
    LogLine(event: event, sentence: sentence, members: [("address", .text(address.description))] + members)
  }
}
