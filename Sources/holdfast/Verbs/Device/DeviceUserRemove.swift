import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastJSON
import HoldfastOpenSSL

struct DeviceUserRemove: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Forget a user, and codes that wait for them; a running device sees it at once.",
    examples: [
      "holdfast device user remove --dir lock alice"
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The user's name.")
  var name: String

  func check() throws(Failure) { _ = try BoundedText<32>(userArgument: name) }

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    let user = try BoundedText<32>(userArgument: name)
    let ledger = try owned.ledger()
    let isUser = try recording { () throws(LedgerFault) in try ledger.users() }.contains { $0.name == user }
    let now = SystemClock().unixSeconds()
    let isRemoved = try recording { () throws(LedgerFault) in try ledger.removeUser(user, realClock: now) }
    guard isRemoved else {
      throw Failure(
        .malformed, "there is no user of that name, and no code for one to activate",
        hint: "to see them: holdfast device user list \(Owned.option) \(owned.path.shellWord)")
    }
    if output.json {
      let state = isUser ? "removed" : "activation-removed"
      Console.result(.object([("user", .string(user.description)), ("state", .string(state))]))
    } else {
      Console.result(
        isUser ? "user \(user): removed" : "user \(user): the open activation is removed; there was no user yet")
    }
  }
}
