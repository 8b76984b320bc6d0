import ArgumentParser
import Glibc
import HoldfastAuthenticator
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct OTP: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "otp", abstract: "Show one-time passwords, and manage the authenticator that generates them.",
    examples: [
      "holdfast otp --authenticator keys",
      "holdfast otp activate --connect unix:/run/lock.sock --authenticator keys",
    ],
    subcommands: [
      OTPCode.self, OTPActivate.self, OTPSync.self, OTPShouldSync.self, OTPUserState.self, OTPUnlock.self, OTPList.self,
      OTPProtect.self, OTPRemove.self,
      OTPImport.self, OTPExport.self, OTPState.self, OTPChallenge.self, OTPCheckHost.self, OTPCompute.self,
    ], defaultSubcommand: OTPCode.self)
}

struct OTPCode: Verb {
  static let configuration = CommandConfiguration(
    commandName: "code", abstract: "Show the next one-time password of a record, after marking it as used.",
    discussion: "A wrong PIN gives a wrong password; only the device can notice that.",
    examples: [
      "holdfast otp --authenticator keys",
      "holdfast otp code --authenticator keys --user alice --pin-file - --json",
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var record: RecordOptions
  @OptionGroup var unlocking: UnlockingOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The question, for an OCRA account.")
  var challenge: String?

  @Flag(help: "Show two passwords in a row, from which a device that lost the count or time can resynchronise.")
  var pair = false

  mutating func perform() throws(Failure) {
    let folder = try authenticator.open()
    let record = try record.find(.otp, in: folder, authenticator)
    guard !pair || challenge == nil else { throw Failure(.usage, "--pair and --challenge cannot be combined") }
    let secret = try unlocking.secret(for: record.protection)
    let (pair, challenge) = (pair, challenge)
    let codes = try authenticator.using { () throws(AuthenticatorFault) in
      let clock = SystemClock()
      return pair
        ? try folder.codePair(for: record, with: secret, clock: clock)
        : [try folder.code(for: record, with: secret, challenge: challenge, clock: clock)]
    }
    report(codes, record)
  }

  private func report(_ codes: [Code], _ record: Record) {
    guard output.json else {
      for code in codes { Console.result(code.text) }
      if !pair { Countdown.run(codes[0].secondsRemaining) }
      return
    }
    let seconds = codes[0].secondsRemaining.map { JSONValue.integer($0) } ?? .null
    let code: (String, JSONValue) =
      pair ? ("codes", .array(codes.map { .string($0.text) })) : ("code", .string(codes[0].text))
    Console.result(
      .object([
        code, ("seconds_remaining", seconds), ("user", .string(record.user)),
        ("index", .integer(UInt64(record.index))),
      ]))
  }
}

/// The countdown of the remaining validity of a displayed code, in one line of a terminal.
enum Countdown {
  /// The longest countdown, in seconds.
  private static let maximumSeconds: UInt64 = 300

  /// Counts down to zero, unless the user interrupts it. Without a terminal, it does nothing.
  static func run(_ seconds: UInt64?) {
    guard let seconds, Console.isTerminal, Console.isResultTerminal else { return }
    guard seconds <= maximumSeconds else {
      Console.note("valid for \(seconds) seconds")
      return
    }
    let clock = SystemClock()
    let start = clock.monotonicMilliseconds()
    while true {
      let passed = (clock.monotonicMilliseconds() - start) / 1000
      guard passed < seconds else { break }
      write("\rvalid for \(seconds - passed) s \u{1b}[K")
      let next = start + (passed + 1) * 1000
      _ = poll(nil, 0, Int32(next - min(next, clock.monotonicMilliseconds())) + 1)
    }
    write("\rexpired\u{1b}[K\n")
  }

  private static func write(_ text: String) { _ = Console.write(Array(text.utf8)[...], to: STDERR_FILENO) }
}
