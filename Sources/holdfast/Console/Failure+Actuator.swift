import Glibc
import HoldfastDevice
import HoldfastLinux

extension Failure {
  /// Creates the failure for an external actuator that could not be started.
  package init(_ fault: ActuatorStartFault, actuator address: ActuatorAddress) {
    switch fault {
    case .system(let error): self.init(.malformed, "\(address) \(Self.text(error, address))", hint: Self.form)
    case .silent:
      let seconds = ExternalActuator.startMilliseconds / 1000
      self.init(.malformed, "\(address) did not say within \(seconds) s which commands it carries out", hint: Self.form)
    case .ended(let end):
      let detail = end.map { " (\($0.text))" } ?? ""
      self.init(
        .malformed, "\(address) ended\(detail) before it said which commands it carries out", hint: Self.form)
    case .badMessage(let fault):
      self.init(.malformed, "the first message of \(address) \(fault.text)", hint: Self.form)
    case .stopped: self = .interrupted
    }
  }

  private static func text(_ error: SystemError, _ address: ActuatorAddress) -> String {
    if case .socket = address {
      return error.isAbsence
        ? "does not exist" : "does not accept a connection: \(unsafe String(cString: strerror(error.number)))"
    }
    switch error.number {
    case ENOENT, ENOTDIR: return "does not exist, or the interpreter in its first line does not"
    case EACCES: return isFolder(address.path) ? "is a folder" : "may not be executed by this user"
    case ENOEXEC: return "is not a program; the first line of a script is #! and its interpreter"
    default: return "could not be started: \(unsafe String(cString: strerror(error.number)))"
    }
  }

  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  private static let form = "docs/operating.md explains, under Actuators, what the device sends and expects"
}

extension ChildEnd {
  /// The end of a program, for a person.
  var text: String {
    switch self {
    case .exited(let status): "exit status \(status)"
    case .signal(let number): "signal \(number)"
    case .unknown: "for an unknown reason"
    }
  }
}

extension ActuatorMessageFault {
  /// The fault of a message, for a person.
  fileprivate var text: String {
    switch self {
    case .tooLong: "is too long"
    case .malformed: "is not as documented: it is neither deterministic CBOR nor, with lines:, strict JSON"
    case .unexpected: "is not as documented: it is not a list of commands"
    case .commands: "is not a list of 1 to 32 different commands of 1 to 32 bytes"
    case .outOfTurn: "came without a question"
    }
  }
}
