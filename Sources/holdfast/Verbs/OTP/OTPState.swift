import ArgumentParser
import HoldfastAuthenticator
import HoldfastJSON
import HoldfastOpenSSL

struct OTPState: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "state", abstract: "Carry the whole state elsewhere, as one line of text under a passphrase.",
    examples: [
      "holdfast otp state export --authenticator keys --file backup.txt",
      "holdfast otp state import --authenticator keys backup.txt",
    ],
    subcommands: [OTPStateExport.self, OTPStateImport.self])
}

/// What the line is encrypted under.
struct PassphraseOptions: ParsableArguments {
  @Option(
    help: "A file with the passphrase, or - for standard input; asked for on the terminal when absent.",
    completion: .file())
  var passphraseFile: String?

  func passphrase(isNew: Bool) throws(Failure) -> Passphrase {
    if let passphraseFile {
      return try Passphrase(line: SecretInput.nextLine(passphraseFile, of: "--passphrase-file", limit: 1025))
    }
    let passphrase = try Passphrase(line: SecretPrompt.ask("passphrase", option: "--passphrase-file"))
    if isNew {
      let again = try Passphrase(line: SecretPrompt.ask("passphrase again", option: "--passphrase-file"))
      guard passphrase.isSame(as: again) else { throw Failure(.malformed, "the two passphrases differ") }
    }
    return passphrase
  }
}

extension Passphrase {
  fileprivate init(line: consuming SecretBytes) throws(Failure) {
    do throws(AuthenticatorFault) { try self.init(line.bytes) } catch { throw Failure(error, folder: "") }
  }
}

struct OTPStateExport: Verb {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Write the whole state as one line, encrypted under a separate passphrase.",
    discussion: "The secrets in it stay blinded by their PINs.",
    examples: [
      "holdfast otp state export --authenticator keys --file backup.txt"
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var passphrase: PassphraseOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "Where it goes; standard output when absent.", completion: .file())
  var file: String?

  mutating func perform() throws(Failure) {
    let folder = try authenticator.open()
    let passphrase = try passphrase.passphrase(isNew: true)
    var random = SystemRandom()
    let line = try authenticator.using { () throws(AuthenticatorFault) in
      try folder.exportState(under: passphrase, random: &random)
    }
    if let file {
      try Output.write(Array((line + "\n").utf8), to: file)
      if output.json {
        Console.result(.object([("file", .string(file)), ("bytes", .integer(UInt64(line.utf8.count)))]))
      } else {
        Console.result("state of \(line.utf8.count) characters in \(file)")
      }
    } else if output.json {
      Console.result(.object([("state", .string(line))]))
    } else {
      Console.result(line)
    }
  }
}

struct OTPStateImport: Verb {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Take over a state that was exported. No counter goes back by it.",
    examples: [
      "holdfast otp state import --authenticator keys backup.txt"
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var passphrase: PassphraseOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Put it in the place of the records that are there.")
  var replace = false

  @Argument(help: "The file with the line, or - for standard input.", completion: .file())
  var file: String

  mutating func perform() throws(Failure) {
    guard file != "-" || passphrase.passphraseFile != "-" else {
      throw Failure(.usage, "standard input cannot be both the state and the passphrase")
    }
    let text = try Input.read(file, limit: 2 << 20)
    try authenticator.using { () throws(AuthenticatorFault) in try Authenticator.checkState(text.span) }
    let passphrase = try passphrase.passphrase(isNew: false)
    let folder = try authenticator.create()
    let replace = replace
    let count = try authenticator.using { () throws(AuthenticatorFault) in
      try folder.importState(text.span, under: passphrase, replacing: replace)
    }
    if output.json {
      Console.result(.object([("records", .integer(UInt64(count)))]))
    } else {
      Console.result("\(count) records in \(authenticator.authenticator)")
    }
  }
}
