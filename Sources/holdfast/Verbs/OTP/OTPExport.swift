import ArgumentParser
import HoldfastAuthenticator
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastQRCode

struct OTPExport: Verb {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Show an account with its secret, as an otpauth:// URI or a QR code.",
    discussion:
      "Anyone who sees the output can use the account. A wrong PIN exports a wrong secret, which this command cannot notice.",
    examples: [
      "holdfast otp export --authenticator keys --qr",
      "holdfast otp export --authenticator keys --user alice --index 1 > uri.txt",
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var record: RecordOptions
  @OptionGroup var unlocking: UnlockingOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Draw a QR code, for a phone to scan.")
  var qr = false

  mutating func perform() throws(Failure) {
    guard !(qr && output.json) else { throw Failure(.usage, "--qr and --json cannot be combined") }
    let folder = try authenticator.open()
    let record = try record.find(.otp, in: folder, authenticator)
    if record.protection.contains(.pin) {
      Console.warning("a wrong PIN exports a wrong secret, which this command cannot notice")
    }
    let secret = try unlocking.secret(for: record.protection)
    let credential: Credential
    do throws(AuthenticatorFault) { credential = try folder.credential(of: record, with: secret) } catch {
      throw Failure(exporting: error, folder: authenticator.authenticator)
    }
    let uri: SecretBytes
    do throws(ExportFault) { uri = try credential.otpauthURI() } catch { throw Failure(error) }
    if qr {
      let drawing: SecretBytes
      do throws(QRCodeFault) {
        drawing = try QRCode(encoding: uri.bytes).drawing(
          contrast: Console.hasColour ? .coloured : .darkOnLight)
      } catch { throw Failure(.fault, "the account does not fit into a QR code") }
      Console.result(lines: drawing.bytes)
    } else if output.json {
      Console.result(
        .object([
          ("uri", .string(text(uri))), ("user", .string(record.user)), ("index", .integer(UInt64(record.index))),
        ]))
    } else {
      Console.result(text(uri))
    }
  }

  private func text(_ secret: borrowing SecretBytes) -> String {
    var bytes: [UInt8] = []
    for index in secret.bytes.indices { bytes.append(secret.bytes[index]) }
    return String(decoding: bytes, as: UTF8.self)
  }
}

struct OTPState: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "state",
    abstract: "Export or import the whole state, as one line of text encrypted with a passphrase.",
    examples: [
      "holdfast otp state export --authenticator keys --file backup.txt",
      "holdfast otp state import --authenticator keys backup.txt",
    ],
    subcommands: [OTPStateExport.self, OTPStateImport.self])
}

/// The option for the passphrase that encrypts the line.
struct PassphraseOptions: ParsableArguments {
  @Option(
    help: "A file with the passphrase, or - for standard input. By default, the command prompts for it.",
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
    commandName: "export", abstract: "Write the whole state as one line, encrypted with a passphrase.",
    discussion: "The secrets in it also stay protected by their PINs.",
    examples: [
      "holdfast otp state export --authenticator keys --file backup.txt"
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var passphrase: PassphraseOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The file for the line; by default, standard output.", completion: .file())
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
    commandName: "import", abstract: "Import an exported state. No counter is set back.",
    examples: [
      "holdfast otp state import --authenticator keys backup.txt"
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var passphrase: PassphraseOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Replace the existing records.")
  var replace = false

  @Argument(help: "The file with the line, or - for standard input.", completion: .file())
  var file: String

  mutating func perform() throws(Failure) {
    guard file != "-" || passphrase.passphraseFile != "-" else {
      throw Failure(.usage, "standard input cannot provide both the state and the passphrase")
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
