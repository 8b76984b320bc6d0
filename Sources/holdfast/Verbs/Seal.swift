import ArgumentParser
import HoldfastAuthenticator
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct Seal: Verb {
  static let configuration = CommandConfiguration(
    commandName: "seal",
    abstract: "Compute the seal of a command: a code that is valid only for this command and its parameters.",
    discussion: "The command and parameters are shown before the PIN is requested. A wrong PIN gives a wrong seal.",
    examples: [
      "holdfast seal --authenticator keys --command open-safe --parameter 7"
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var record: RecordOptions
  @OptionGroup var unlocking: UnlockingOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The command for the device, at most 32 bytes.")
  var command: String

  @Option(
    help:
      "A parameter of the command, at most 16 characters unless the record allows more; may be repeated, at most 8 times."
  )
  var parameter: [String] = []

  @Option(help: "The device's challenge, 16 hexadecimal digits, for records whose seals require one.")
  var deviceChallenge: String?

  mutating func perform() throws(Failure) {
    let challenge = try deviceChallenge.map { (text) throws(Failure) in
      guard let challenge = DeviceChallenge(text) else {
        throw Failure(.usage, "--device-challenge must be 16 hexadecimal digits")
      }
      return challenge
    }
    let folder = try authenticator.open()
    let record = try record.find(.seal, in: folder, authenticator)
    guard record.needsChallenge == (challenge != nil) else {
      throw Failure(
        .usage,
        record.needsChallenge ? "the record's seals require --device-challenge" : "the record's seals use no challenge")
    }
    let request: SealRequest
    do throws(SealFault) {
      request = try SealRequest(command: command, parameters: parameter, fieldByteLimit: record.sealFieldByteLimit)
    } catch { throw Failure(error, fieldByteLimit: record.sealFieldByteLimit) }
    show(request)
    let secret = try unlocking.secret(for: record.protection)
    let seal = try authenticator.using { () throws(AuthenticatorFault) in
      try folder.seal(request, for: record, challenge: challenge, with: secret, clock: SystemClock())
    }
    if output.json {
      Console.result(
        .object([
          ("seal", .string(seal.text)), ("seconds_remaining", seal.secondsRemaining.map { .integer($0) } ?? .null),
          ("user", .string(record.user)), ("index", .integer(UInt64(record.index))),
        ]))
    } else {
      Console.result(seal.text)
      Countdown.run(seal.secondsRemaining)
    }
  }

  private func show(_ request: SealRequest) {
    Console.note("sealing command: \(request.command)")
    for (index, parameter) in request.parameters.enumerated() {
      Console.note("    parameter \(index + 1): \(parameter)")
    }
    if request.parameters.isEmpty { Console.note("    no parameters") }
  }
}
