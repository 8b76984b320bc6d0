import ArgumentParser
import HoldfastCore
import HoldfastJSON
import HoldfastOpenSSL
import HoldfastTransport

struct OTPUnlock: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Be let try again by a device that has locked you out, by a code of its owner's.",
    discussion: "The owner's code comes from: holdfast device user unlock NAME.",
    examples: [
      "holdfast otp unlock --connect unix:/run/lock.sock",
      "holdfast otp unlock --connect unix:/run/lock.sock --code code.txt",
    ])

  @Option(help: "Where the device is, such as unix:/run/lock.sock.")
  var connect: String

  @OptionGroup var code: OwnersCodeOptions
  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let endpoint = try Endpoint(peerArgument: connect)
    let timeoutMilliseconds = try waiting.milliseconds()
    let ownersCode = try code.read()
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    let session = UserSession(
      code: ownersCode, for: .unlock, cryptography: OpenSSLCryptography(), random: SystemRandom())
    try UserConversation(endpoint: endpoint, timeoutMilliseconds: timeoutMilliseconds).run(session) {
      (_) throws(Failure) in throw Failure(.malformed, "the other end does not speak this protocol")
    }
    if output.json {
      Console.result(.object([("state", .string("unlocked"))]))
    } else {
      Console.result("unlocked")
    }
  }
}
