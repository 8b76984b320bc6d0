import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastOpenSSL

struct DeviceUserUnlock: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Print a code by which a user who is locked out may try again, once.",
    discussion: "The user takes it with: holdfast otp unlock --connect ENDPOINT --code CODE.")

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The user's name.")
  var name: String

  mutating func perform() throws(Failure) {
    let user = try BoundedText<32>(userArgument: name)
    let folder = try device.open()
    let ledger = try device.openLedger(folder)
    let code: OneUseCode
    do throws(LedgerFault) {
      var random = SystemRandom()
      code = try ledger.issueUnlock(of: user, realClock: SystemClock().unixSeconds(), random: &random)
    } catch { throw Failure(error) }
    Console.result(user, code: code, json: output.json)
  }
}
