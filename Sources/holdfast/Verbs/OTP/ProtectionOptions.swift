import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastMeasurement
import HoldfastOpenSSL

/// The options for the PIN and the key of a record's secret.
struct UnlockingOptions: ParsableArguments {
  @Option(
    help: "A file with the PIN, or - for standard input. By default, the command prompts for it.", completion: .file())
  var pinFile: String?

  @Option(
    help: "A file with the key that another authenticator provides, 16 to 1024 bytes, for a record that has one.",
    completion: .file())
  var keyFile: String?

  @Option(help: "An open file descriptor from which to read this key.")
  var keyFd: Int32?

  /// Whether any of them is given.
  var isGiven: Bool { pinFile != nil || keyFile != nil || keyFd != nil }

  /// Reads or asks for the inputs that a record requires, the key first and the PIN last.
  func secret(for inputs: ProtectionInputs, question: String = "PIN") throws(Failure) -> ProtectionSecret {
    guard keyFile == nil || keyFd == nil else {
      throw Failure(.usage, "--key-file and --key-fd cannot be combined")
    }
    let isKeyGiven = keyFile != nil || keyFd != nil
    guard inputs.contains(.key) || inputs.isEmpty || !isKeyGiven else {
      throw Failure(
        .usage, "the record needs a PIN, not a key", hint: "holdfast otp list shows what protects each record")
    }
    guard inputs.contains(.pin) || inputs.isEmpty || pinFile == nil else {
      throw Failure(
        .usage, "the record needs no PIN", hint: "holdfast otp list shows what protects each record")
    }
    var key: ExternalKey?
    var host: ExternalKey?
    var pin: PIN?
    if inputs.contains(.key) {
      key = try ExternalKey(
        file: keyFile, descriptor: keyFd, of: "--key-file",
        refusal: Failure(
          .usage,
          inputs.contains(.pin) ? "the record needs a key and a PIN" : "the record needs a key instead of a PIN",
          hint: "use --key-file or --key-fd"))
    }
    if inputs.contains(.host) { host = try ExternalKey(ofThisHost: .existing) }
    if inputs.contains(.pin) {
      pin = try PIN(file: pinFile, of: "--pin-file", question: question, option: "--pin-file")
    }
    return ProtectionSecret(pin: pin, key: key, host: host)
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

  @Option(
    help: "A file with a key that is needed in addition to the PIN, 16 to 1024 random bytes.", completion: .file())
  var addKeyFile: String?

  @Option(help: "An open file descriptor from which to read this additional key.")
  var addKeyFd: Int32?

  @Flag(help: "Bind the records to this host: its device.secret is needed in addition.")
  var bindHost = false

  /// Whether any of them is given.
  var isGiven: Bool { replacesPIN || addsKey || bindHost }
  /// Whether an option says what replaces the PIN.
  var replacesPIN: Bool { newPinFile != nil || newKeyFile != nil || newKeyFd != nil || noPin }
  /// Whether the PIN is replaced by a key.
  var isKeyInstead: Bool { newKeyFile != nil || newKeyFd != nil }
  /// Whether a key is needed in addition.
  var addsKey: Bool { addKeyFile != nil || addKeyFd != nil }

  /// Checks which options are combined.
  func check() throws(Failure) {
    let given = [newPinFile != nil, newKeyFile != nil, newKeyFd != nil, noPin]
    guard given.count(where: { $0 }) <= 1 else {
      throw Failure(.usage, "--new-pin-file, --new-key-file, --new-key-fd and --no-pin cannot be combined")
    }
    guard addKeyFile == nil || addKeyFd == nil else {
      throw Failure(.usage, "--add-key-file and --add-key-fd cannot be combined")
    }
    guard !addsKey || !(isKeyInstead || noPin) else {
      throw Failure(
        .usage, "an additional key needs a PIN", hint: "for a key without a PIN, use --new-key-file or --new-key-fd")
    }
  }

  /// Reads or asks for the protection of records that are new.
  func secret() throws(Failure) -> ProtectionSecret {
    try check()
    let key = try isKeyInstead ? newKey() : additionalKey()
    let host = try hostSecret()
    return ProtectionSecret(pin: try newPIN(), key: key, host: host)
  }

  /// Reads or asks for the new PIN; nil if there shall be none.
  func newPIN() throws(Failure) -> PIN? {
    if noPin || isKeyInstead { return nil }
    guard let newPinFile else { return try askForPIN() }
    let pin = try PIN(file: newPinFile, of: "--new-pin-file", question: "new PIN", option: "--new-pin-file")
    if let fault = pin.ruleFault { throw Failure(fault) }
    return pin
  }

  /// Reads the key that replaces the PIN; nil if none does.
  func newKey() throws(Failure) -> ExternalKey? {
    guard isKeyInstead else { return nil }
    return try ExternalKey(
      file: newKeyFile, descriptor: newKeyFd, of: "--new-key-file", refusal: Failure(.usage, "a key is missing"))
  }

  /// Reads the additional key; nil if there is none.
  func additionalKey() throws(Failure) -> ExternalKey? {
    guard addsKey else { return nil }
    return try ExternalKey(
      file: addKeyFile, descriptor: addKeyFd, of: "--add-key-file", refusal: Failure(.usage, "a key is missing"))
  }

  /// Reads the secret of this host, or creates it, if the records shall be bound to it.
  func hostSecret() throws(Failure) -> ExternalKey? {
    guard bindHost else { return nil }
    return try ExternalKey(ofThisHost: .created)
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
  /// Reads a key from a file or a descriptor; throws `refusal` if neither is given.
  init(
    file: String?, descriptor: Int32?, of option: String, refusal: @autoclosure () -> Failure
  ) throws(Failure) {
    let bytes: SecretBytes
    if let file {
      bytes = try SecretInput.read(file, of: option, limit: Self.byteCounts.upperBound + 1)
    } else if let descriptor {
      bytes = try SecretInput.read(descriptor: descriptor, limit: Self.byteCounts.upperBound)
    } else {
      throw refusal()
    }
    guard let key = ExternalKey(bytes.bytes) else {
      throw Failure(.malformed, "a key must have 16 to 1024 bytes")
    }
    self = key
  }

  /// Whether the host's secret must be there already.
  fileprivate enum HostSecretUse {
    case existing, created
  }

  /// Reads the secret of this host.
  fileprivate init(ofThisHost use: HostSecretUse) throws(Failure) {
    let secret: Secret<32>
    do throws(HostSecretFault) {
      let place = try HostSecret(HostFiles())
      secret = use == .created ? try place.readOrCreate() : try place.read()
    } catch .missing {
      throw Failure(
        .denied, "the record is bound to a host, and this one has no device.secret",
        hint: "use the host to which it was bound, or activate again")
    } catch { throw Failure(error) }
    let key = secret.withBytes { ExternalKey($0) }
    guard let key else { throw Failure(.fault, "this host's secret has a wrong length") }
    self = key
  }
}
