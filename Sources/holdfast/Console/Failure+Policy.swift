import HoldfastDevice
import HoldfastFormats

extension PolicyFault {
  /// Describes the fault of a policy from the file `name`.
  func text(_ name: String) -> String {
    switch self {
    case .unreadable: "\(name) is missing, unreadable, or not a regular file of the owner"
    case .malformed(let mistake), .unexpected(let mistake): mistake.text(in: name)
    case .newerVersion: "\(name) was written by a later version"
    case .notSigned: "\(name) is not a signed policy, which this device needs"
    case .anotherKey: "\(name) was not signed with the device's policy key"
    case .notAuthentic: "the signature of \(name) is wrong"
    case .anotherDevice: "\(name) was signed for another device"
    case .outdated(let newest): "\(name) is not newer than the policy with number \(newest), which the device has taken"
    case .unrecorded: "the number of \(name) could not be recorded in the ledger"
    case .unwritable: "\(name) could not be written"
    }
  }

  /// The kind of the fault, for programs.
  var code: FailureCode {
    switch self {
    case .unreadable, .malformed, .unexpected, .newerVersion: .malformed
    case .notSigned: .policyNotSigned
    case .anotherKey: .policyOfAnotherKey
    case .notAuthentic: .policyNotAuthentic
    case .anotherDevice: .policyForAnotherDevice
    case .outdated: .policyOutdated
    case .unrecorded, .unwritable: .policyUnrecorded
    }
  }

  fileprivate var hint: String {
    switch code {
    case .malformed: "correct or restore the file"
    default: code.row.advice
    }
  }
}

extension Failure {
  /// Creates the failure for a policy in the file `name` that is not installed.
  package init(_ fault: PolicyFault, file name: String) {
    if case .unwritable(let error) = fault {
      self.init(error)
    } else {
      self.init(code: fault.code, "\(fault.text(name)); nothing changed", hint: fault.hint)
    }
  }

  /// Creates the failure for the policy file of a device.
  package init(inForce fault: PolicyFault, in name: String) {
    self.init(code: fault.code, "the device denies everything: \(fault.text(name))", hint: fault.hint)
  }
}
