import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastOpenSSL

struct DeviceUserUnlock: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Print a code by which a user who is locked out may try again, once.",
    discussion: "The user types it into: holdfast otp unlock --connect ENDPOINT --code -",
    examples: [
      "holdfast device user unlock --dir lock alice"
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The user's name.")
  var name: String

  func check() throws(Failure) { _ = try BoundedText<32>(userArgument: name) }

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    let user = try BoundedText<32>(userArgument: name)
    let ledger = try owned.ledger()
    let code = try recording { () throws(LedgerFault) in
      var random = SystemRandom()
      return try ledger.issueUnlock(of: user, realClock: SystemClock().unixSeconds(), random: &random)
    }
    Console.result(user, code: code, json: output.json)
    Console.note("\(user) is let in by it: holdfast otp unlock --connect ENDPOINT --code -")
  }
}
