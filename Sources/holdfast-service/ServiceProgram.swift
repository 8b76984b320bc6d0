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
      ImageVerbs.self, RaiseMinimumVersion.self, RequestVerbs.self, OperatorVerbs.self, RotateKey.self,
      IntroduceKey.self, EndKey.self,
      PolicyVerbs.self, SettingsVerbs.self,
      PostureRulesVerbs.self, AuditVerbs.self,
      ResponseCode.self, DomainVerbs.self, PinVerbs.self, StringVerbs.self, MessageKeyVerbs.self,
      AppKeyVerbs.self, DevelopmentKeyVerbs.self, InitialConfiguration.self, Export.self, Restore.self, OpenAPI.self,
    ])

  static func main() async {
    // The parser's own `help` ignores words that are not verbs, and shows the page of the verbs before them.
    let words = CommandLine.arguments.dropFirst()
    if words.first == "help", let word = wordWithoutVerb(words.dropFirst()) {
      exit(withError: ValidationError("there is no verb '\(word)'"))
    }
    await main(nil)
  }

  /// Returns the first of some words that is no verb below those before it; nil if there is none.
  private static func wordWithoutVerb(_ words: ArraySlice<String>) -> String? {
    var command: any ParsableCommand.Type = Self.self
    for word in words where !word.hasPrefix("-") {
      guard let next = command.configuration.subcommands.first(where: { $0._commandName == word }) else { return word }
      command = next
    }
    return nil
  }
}

struct DeviceVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "Register and change devices.",
    subcommands: [AddDevice.self, ChangeDevice.self, SetGroups.self, ChangeDeviceUser.self])
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

struct DomainVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "domain", abstract: "Add and remove the API domains for which apps get tokens.",
    subcommands: [AddDomain.self, RemoveDomain.self, DomainSecret.self, RotateDomain.self])
}

struct PinVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pin", abstract: "Add, remove and force the pins of domains' public keys.",
    subcommands: [AddPin.self, RemovePin.self, ForcePins.self])
}

struct StringVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "string", abstract: "Set and remove secure strings, which attested apps get.",
    subcommands: [SetString.self, RemoveString.self])
}

struct MessageKeyVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "message-key", abstract: "Show and replace the key with which attested apps sign messages.",
    subcommands: [ShowMessageKey.self, RotateMessageKey.self, MessageSecret.self])
}

struct DevelopmentKeyVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "development-key", abstract: "Make, remove and show the development key.",
    subcommands: [NewDevelopmentKey.self, RemoveDevelopmentKey.self, ShowDevelopmentKey.self])
}

struct AppKeyVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "app-key", abstract: "List and rotate the keys that sign tokens for apps.",
    subcommands: [ListAppKeys.self, RotateAppKey.self])
}

struct SettingsVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "settings", abstract: "Set the settings of all tokens, of an app's, or of those for a device.",
    subcommands: [SetSettings.self, RemoveSettings.self])
}

struct PostureRulesVerbs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "posture-rules", abstract: "Sign and show the rules about the posture of provers, which they fetch.",
    subcommands: [SetPostureRules.self, ShowPostureRules.self])
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
