import HoldfastFormats
import HoldfastTransport

/// A finding of `doctor` for a person, with the command that fixes it.
struct FindingText {
  let check: String
  let state: String
  let message: String
  let hint: String?

  /// Creates a finding of a check that does not concern connections.
  init(_ check: String, _ state: Diagnostic.State, _ message: String, hint: String? = nil) {
    (self.check, self.state, self.message, self.hint) = (check, state.name, message, hint)
  }

  /// Creates a finding of a check that failed. A missing permission is distinguished from all other failures.
  init(_ check: String, _ failure: Failure) {
    self.init(check, failure.status == .noPermission ? .forbidden : .missing, failure.message, hint: failure.hint)
  }

  /// Creates a finding of a connection check. `adapter` is a name such as `hci0`; `endpoint` is the one to be reached.
  init(_ finding: Diagnostic, adapter: String?, endpoint: Endpoint?) {
    let isOK = finding.state == .ok
    check = finding.topic.name
    state = finding.state.name
    if case .connection(let attempt) = finding.topic, let endpoint {
      message = attempt.text(at: endpoint)
      hint = isOK ? nil : attempt.failure(at: endpoint).hint
    } else {
      message = finding.topic.message(isOK, adapter)
      hint = isOK ? nil : finding.topic.hint(adapter ?? "hci0")
    }
  }

  func isOf(_ state: Diagnostic.State) -> Bool { self.state == state.name }

  var lines: [String] {
    ["\(state.padded(10))\(message)"] + (hint.map { ["          \($0)"] } ?? [])
  }

  var json: JSONValue {
    var members: [(String, JSONValue)] = [
      ("check", .string(check)), ("state", .string(state)), ("text", .string(message)),
    ]
    if let hint { members.append(("hint", .string(hint))) }
    return .object(members)
  }
}

extension Diagnostic.State {
  fileprivate var name: String {
    switch self {
    case .ok: "ok"
    case .missing: "missing"
    case .forbidden: "forbidden"
    case .note: "note"
    }
  }
}

extension Diagnostic.Topic {
  /// The state in the output of `--json`.
  fileprivate var name: String {
    switch self {
    case .kernel: "kernel"
    case .l2cap: "l2cap"
    case .rfcomm: "rfcomm"
    case .adapter: "adapter"
    case .radio: "radio"
    case .power: "power"
    case .lowEnergy: "low-energy"
    case .connectable: "connectable"
    case .discoverable: "discoverable"
    case .secureSimplePairing: "secure-simple-pairing"
    case .bondable: "bondable"
    case .administration: "administration"
    case .discoveryServer: "sdp-server"
    case .connection: "connection"
    }
  }

  fileprivate func message(_ isOK: Bool, _ name: String?) -> String {
    let adapter = name ?? "the adapter"
    return switch self {
    case .kernel: isOK ? "the kernel has Bluetooth" : "the kernel has no Bluetooth"
    case .l2cap: isOK ? "the kernel has L2CAP" : "the kernel has no L2CAP"
    case .rfcomm: isOK ? "the kernel has RFCOMM" : "the kernel has no RFCOMM"
    case .adapter:
      isOK ? "there is an adapter, \(adapter)" : "there is no Bluetooth adapter" + (name.map { " \($0)" } ?? "")
    case .radio(nil): "nothing blocks the radio of \(adapter)"
    case .radio(.soft): "the radio of \(adapter) is blocked"
    case .radio(.hard): "a hardware switch or key of this machine blocks the radio of \(adapter)"
    case .power: "\(adapter) is powered \(isOK ? "on" : "off")"
    case .lowEnergy: "\(adapter) has Low Energy \(isOK ? "on" : "off, which le: endpoints need")"
    case .connectable:
      isOK
        ? "\(adapter) accepts connections" : "\(adapter) does not accept connections, which a device needs"
    case .discoverable:
      isOK
        ? "\(adapter) can be found by a scan"
        : "\(adapter) cannot be found by a scan; it can be reached by its address"
    case .secureSimplePairing:
      "\(adapter) has Secure Simple Pairing \(isOK ? "on" : "off: links are encrypted only after pairing by PIN")"
    case .bondable:
      isOK ? "\(adapter) stores pairings" : "\(adapter) does not store pairings: a peer must pair each time"
    case .administration:
      isOK
        ? "this user may scan, advertise and accept pairing"
        : "this user may not scan, advertise or accept pairing, which requires CAP_NET_ADMIN"
    case .discoveryServer(.ready): "an SDP server accepts records: provers can find a device's PSM or channel"
    case .discoveryServer(.absent):
      "no SDP server accepts records: provers must give the PSM or channel of a device on this host"
    case .discoveryServer(.forbidden): "the SDP server accepts no records from this user"
    case .connection: "the other end \(isOK ? "answers" : "does not answer")"
    }
  }

  fileprivate func hint(_ adapter: String) -> String? {
    switch self {
    case .kernel: "sudo modprobe btusb; in a container or virtual machine, its host must provide it"
    case .l2cap: "sudo modprobe bluetooth"
    case .rfcomm: "sudo modprobe rfcomm"
    case .adapter: "plug one in and run sudo modprobe btusb; btmgmt info lists adapters"
    case .radio(.hard): "use the switch or key; rfkill list shows it"
    case .radio: "sudo rfkill unblock bluetooth"
    case .power: "sudo btmgmt -i \(adapter) power on"
    case .lowEnergy: "sudo btmgmt -i \(adapter) le on"
    case .connectable: "sudo btmgmt -i \(adapter) connectable on"
    case .discoverable: "sudo btmgmt -i \(adapter) discov on"
    case .secureSimplePairing: "sudo btmgmt -i \(adapter) ssp on"
    case .bondable: "sudo btmgmt -i \(adapter) bondable on"
    case .administration: "run such commands with sudo"
    case .discoveryServer(.forbidden):
      "run holdfast device serve as root, or give a group of its user access: sudo chgrp GROUP /run/sdp"
    case .discoveryServer: compatibleDaemon
    case .connection: nil
    }
  }
}

extension ConnectionAttempt {
  /// Returns the finding for a person; `endpoint` is the one at which the connection was tried.
  func text(at endpoint: Endpoint) -> String {
    if case .device(let id) = self { return "Holdfast device \(id) answers at \(endpoint)" }
    return failure(at: endpoint).message
  }

  fileprivate func failure(at endpoint: Endpoint) -> Failure {
    switch self {
    case .failed(let error): Failure(error, endpoint: endpoint)
    case .silent:
      Failure(
        .unavailable, "the other end at \(endpoint) accepts the connection but sends nothing",
        hint: "another program may be listening there, or the device is busy: see its log")
    case .device, .stranger:
      Failure(
        .malformed, "the program that answers at \(endpoint) is not a Holdfast device",
        hint: "is it the right address and number?")
    }
  }
}
