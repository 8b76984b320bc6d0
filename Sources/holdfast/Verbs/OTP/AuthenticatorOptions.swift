import ArgumentParser
import HoldfastAuthenticator
import HoldfastOpenSSL

/// The option for the place of the authenticator.
struct AuthenticatorOptions: ParsableArguments {
  @Option(help: "The authenticator's folder.", completion: .directory)
  var authenticator: String

  func open() throws(Failure) -> Authenticator {
    do throws(AuthenticatorFault) { return try AuthenticatorFolder.open(at: authenticator) } catch {
      throw Failure(error, folder: authenticator)
    }
  }

  /// Opens the authenticator, after creating the folder and file if necessary.
  func create() throws(Failure) -> Authenticator {
    do throws(AuthenticatorFault) { return try AuthenticatorFolder.create(at: authenticator) } catch {
      throw Failure(making: error, folder: authenticator)
    }
  }

  /// Runs a step on the authenticator and converts its fault to a failure.
  @discardableResult
  func using<Result: ~Copyable>(_ body: () throws(AuthenticatorFault) -> Result) throws(Failure) -> Result {
    do throws(AuthenticatorFault) { return try body() } catch { throw Failure(error, folder: authenticator) }
  }
}

/// The options that select a record.
struct RecordOptions: ParsableArguments {
  @Option(help: "The user of the record; optional if there is only one user.")
  var user: String?

  @Option(help: "The index of the user's record, 1 to 8; optional if only one record fits.")
  var index: Int?

  func find(
    _ purpose: RecordPurpose, in authenticator: Authenticator, _ options: AuthenticatorOptions
  ) throws(Failure) -> Record {
    try options.using { () throws(AuthenticatorFault) in
      try authenticator.record(user: user, index: index, purpose: purpose)
    }
  }
}

/// The options for the PIN or key of a record's secret.
struct UnlockingOptions: ParsableArguments {
  @Option(
    help: "A file with the PIN, or - for standard input. By default, the command prompts for it.", completion: .file())
  var pinFile: String?

  @Option(
    help: "A file with the key that another authenticator provides instead of a PIN, 16 to 1024 bytes.",
    completion: .file())
  var keyFile: String?

  @Option(help: "An open file descriptor from which to read this key.")
  var keyFd: Int32?

  /// Reads or asks for the input that a mode requires.
  func secret(for mode: PINMode, question: String = "PIN") throws(Failure) -> ProtectionSecret {
    guard [pinFile != nil, keyFile != nil, keyFd != nil].count(where: { $0 }) <= 1 else {
      throw Failure(.usage, "--pin-file, --key-file and --key-fd cannot be combined")
    }
    switch mode {
    case .none: return .none
    case .external: return .key(try ExternalKey(file: keyFile, descriptor: keyFd, option: "--key-file or --key-fd"))
    case .current, .new: break
    }
    guard keyFile == nil, keyFd == nil else {
      throw Failure(
        .usage, "the record needs a PIN, not a key", hint: "holdfast otp list shows what protects each record")
    }
    return .pin(try PIN(file: pinFile, of: "--pin-file", question: question, option: "--pin-file"))
  }
}

/// The options for the new protection of a secret.
struct NewProtectionOptions: ParsableArguments {
  @Option(
    help:
      "A file with the new PIN, or - for standard input. By default, the command prompts for it twice. A PIN has 4 to 6 digits, which must not count up or down, repeat themselves, or begin or end with a year.",
    completion: .file())
  var newPinFile: String?

  @Option(help: "A file with a key to use instead of a PIN, 16 to 1024 bytes.", completion: .file())
  var newKeyFile: String?

  @Option(help: "An open file descriptor from which to read this key.")
  var newKeyFd: Int32?

  @Flag(help: "Use no PIN: anyone who has the folder can generate the codes.")
  var noPin = false

  func secret() throws(Failure) -> ProtectionSecret {
    let given = [newPinFile != nil, newKeyFile != nil, newKeyFd != nil, noPin]
    guard given.count(where: { $0 }) <= 1 else {
      throw Failure(.usage, "--new-pin-file, --new-key-file, --new-key-fd and --no-pin cannot be combined")
    }
    if noPin { return .none }
    if newKeyFile != nil || newKeyFd != nil {
      return .key(try ExternalKey(file: newKeyFile, descriptor: newKeyFd, option: "--new-key-file"))
    }
    guard let newPinFile else { return .pin(try askForPIN()) }
    let pin = try PIN(file: newPinFile, of: "--new-pin-file", question: "new PIN", option: "--new-pin-file")
    if let fault = pin.ruleFault { throw Failure(fault) }
    return .pin(pin)
  }

  /// Asks for a PIN until it meets the rules and is typed twice, at most five times.
  private func askForPIN() throws(Failure) -> PIN {
    var refusal = Failure(.malformed, "no PIN was chosen")
    for _ in 0..<5 {
      do throws(Failure) { return try chosenPIN() } catch {
        guard error.status == .malformed else { throw error }
        refusal = error
        Console.report(error)
      }
    }
    throw Failure(refusal.status, "no PIN was chosen in five attempts", hint: refusal.hint)
  }

  private func chosenPIN() throws(Failure) -> PIN {
    let pin = try PIN(file: nil, of: "--new-pin-file", question: "new PIN", option: "--new-pin-file, or --no-pin")
    if let fault = pin.ruleFault { throw Failure(fault) }
    let again = try PIN(file: nil, of: "--new-pin-file", question: "new PIN again", option: "--new-pin-file")
    guard pin.isSame(as: again) else {
      throw Failure(.malformed, "the two PINs differ", hint: "type the same one twice")
    }
    return pin
  }
}

extension PIN {
  /// Reads a PIN or asks for it.
  fileprivate init(file: String?, of fileOption: String, question: String, option: String) throws(Failure) {
    let digits: SecretBytes
    if let file {
      guard !file.isCode else {
        throw Failure(
          secretGivenTo: fileOption,
          hint: "give it a file, or - for standard input; without it, the command prompts for the secret")
      }
      digits = try SecretInput.nextLine(file, of: fileOption, limit: 1024)
    } else {
      digits = try SecretPrompt.ask(question, option: option)
    }
    do throws(PINFault) { try self.init(digits.bytes) } catch { throw Failure(error) }
  }
}

extension ExternalKey {
  fileprivate init(file: String?, descriptor: Int32?, option: String) throws(Failure) {
    let bytes: SecretBytes
    if let file {
      bytes = try SecretInput.read(file, of: option, limit: Self.byteCounts.upperBound + 1)
    } else if let descriptor {
      bytes = try SecretInput.read(descriptor: descriptor, limit: Self.byteCounts.upperBound)
    } else {
      throw Failure(.usage, "the record needs a key instead of a PIN", hint: "use \(option)")
    }
    guard let key = ExternalKey(bytes.bytes) else {
      throw Failure(.malformed, "a key must have 16 to 1024 bytes")
    }
    self = key
  }
}
