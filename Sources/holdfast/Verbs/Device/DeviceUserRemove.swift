import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastJSON
import HoldfastOpenSSL

struct DeviceUserRemove: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Forget a user; a running device sees it at once.",
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
    let now = SystemClock().unixSeconds()
    let isRemoved = try recording { () throws(LedgerFault) in try ledger.removeUser(user, realClock: now) }
    guard isRemoved else { throw Failure(LedgerFault.unknownUser) }
    if output.json {
      Console.result(.object([("user", .string(user.description)), ("state", .string("removed"))]))
    } else {
      Console.result("user \(user): removed")
    }
  }
}
