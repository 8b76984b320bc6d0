import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastJSON
import HoldfastOpenSSL

struct DeviceUserRemove: Verb {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Forget a user; a running device sees it at once.")

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The user's name.")
  var name: String

  mutating func perform() throws(Failure) {
    let user = try BoundedText<32>(userArgument: name)
    let folder = try device.open()
    let ledger = try device.openLedger(folder)
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
