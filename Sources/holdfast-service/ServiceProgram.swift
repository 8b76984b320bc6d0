#if Service
import ArgumentParser
import HoldfastVersion

/// The online service of a fleet.
@main struct Program: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "holdfast-service",
    abstract: "The online service of a fleet: it decides who may enrol for which device.",
    version: HoldfastVersion.description,
    subcommands: [
      Init.self, Serve.self, Invite.self, List.self, Show.self, Revoke.self, Reinstate.self, DeviceVerbs.self,
      ImageVerbs.self, RequestVerbs.self, OperatorVerbs.self, RotateKey.self, PolicyVerbs.self, AuditVerbs.self,
      ResponseCode.self, Export.self, Restore.self, OpenAPI.self,
    ])
}

struct DeviceVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "Register and change devices.", subcommands: [AddDevice.self, ChangeDevice.self])
}

struct ImageVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "image", abstract: "Approve executables, and withdraw approvals.",
    subcommands: [ApproveImage.self, WithdrawImage.self])
}

struct RequestVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "request", abstract: "Decide about requests for tokens.",
    subcommands: [ApproveRequest.self, RefuseRequest.self])
}

struct OperatorVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "operator", abstract: "Make and revoke operators' tokens.",
    subcommands: [AddOperator.self, RemoveOperator.self])
}

struct AuditVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit", abstract: "Receive the audit logs of devices.", subcommands: [ReceiveAudit.self])
}

struct PolicyVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "policy", abstract: "Show and replace the policy.", subcommands: [ShowPolicy.self, SetPolicy.self])
}

#else
import Glibc

/// A program that says how to build the service.
@main struct Program {
  static func main() {
    print("holdfast-service was built without its server; build it with: make service")
    exit(69)
  }
}
#endif
