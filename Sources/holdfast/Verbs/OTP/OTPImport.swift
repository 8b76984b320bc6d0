import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct OTPImport: Verb {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Import accounts from otpauth:// and otpauth-migration:// URIs, a PSKC key container, or a bare secret.",
    discussion: "The command imports either all accounts of the file or none. All get the same PIN.",
    examples: [
      "holdfast otp import --authenticator keys uri.txt",
      "holdfast otp import --authenticator keys --format base32 --user alice -",
      """
      holdfast otp import --authenticator keys \\
      --container-passphrase-file - tokens.xml
      """,
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var new: NewProtectionOptions
  @OptionGroup var bare: BareAccountOptions
  @OptionGroup var container: ContainerOptions
  @OptionGroup var output: OutputOptions

  @Option(
    help:
      "The format of the file: otpauth, migration, pskc, base32, hex or raw. The first three are recognised by their first characters."
  )
  var format: CredentialFormat?

  @Option(help: "The user of the account; required for a bare secret, otherwise it replaces the name in the file.")
  var user: String?

  @Option(help: "The index of the record, 1 to 8; by default, the lowest free one.")
  var index: Int?

  @Option(help: "The purpose of the codes: otp, seal or host.")
  var purpose: PurposeName = .otp

  @Option(help: "The number of codes that the device searches ahead; no code beyond them is shown.")
  var window: UInt64?

  @Option(help: "The maximum length of a sealed parameter in bytes, up to 64; by default, 16 characters.")
  var sealFieldBytes: Int?

  @Argument(help: "The file, or - for standard input.", completion: .file())
  var file: String

  mutating func perform() throws(Failure) {
    let credentials = try read()
    guard index == nil || credentials.count == 1 else {
      throw Failure(.usage, "--index is for one account, but there are \(credentials.count)")
    }
    for credential in credentials where credential.isShort {
      Console.warning(
        "the secret of \(credential.user) has \(credential.secret.count) bytes, which is short for its hash")
    }
    let protection = try new.secret()
    for credential in credentials where credential.isText && protection.inputs.contains(.pin) {
      Console.warning(
        "the secret of \(credential.user) is text and not random bytes, so anyone who has the file can recognise a wrong PIN"
      )
    }
    let folder = try authenticator.create()
    let records = try authenticator.using { () throws(AuthenticatorFault) in try place(credentials, in: folder) }
    var random = SystemRandom()
    try authenticator.using { () throws(AuthenticatorFault) in
      try folder.add(records, protection: protection, random: &random)
    }
    report(records)
  }

  private func read() throws(Failure) -> [Credential] {
    guard !file.isKeyURI else {
      throw Failure(
        secretGivenTo: "otp import", hint: "give it a file with the URI, or - with the URI on standard input")
    }
    let bytes = try SecretInput.read(file, of: "otp import", limit: Credential.maximumFileByteCount)
    guard let format = format ?? CredentialFormat.detect(bytes.bytes) else {
      throw Failure(
        .usage, "\(SecretInput.name(file)) has no recognisable format", hint: "name it: --format base32, hex or raw")
    }
    var parameters = ImportParameters(user: user, containerKey: try container.key())
    parameters.acceptsUncheckedSignature = container.acceptUncheckedSignature
    parameters.acceptsUnenforcedPolicy = container.acceptUnenforcedPolicy
    if format.isBare {
      guard let user else { throw Failure(.usage, "a bare secret does not name its user", hint: "add --user NAME") }
      parameters.account = try bare.account(of: user)
    }
    do throws(ImportFault) { return try Credential.read(bytes.bytes, format: format, parameters: parameters) } catch {
      throw Failure(error, in: SecretInput.name(file))
    }
  }

  private func place(_ credentials: [Credential], in folder: Authenticator) throws(AuthenticatorFault) -> [NewRecord] {
    var records: [NewRecord] = []
    for credential in credentials {
      let place = if let index { index } else { try folder.freeIndex(user: credential.user, besides: records) }
      records.append(
        NewRecord(
          index: place, purpose: purpose.purpose, credential: credential, lookAheadWindow: window,
          sealFieldByteLimit: sealFieldBytes))
    }
    return records
  }

  private func report(_ records: [NewRecord]) {
    guard output.json else {
      for record in records {
        Console.result("\(record.credential.user) \(record.index): \(record.credential.method.description)")
      }
      return
    }
    let list = records.map { record in
      JSONValue.object([
        ("user", .string(record.credential.user)), ("index", .integer(UInt64(record.index))),
        ("method", .string(record.credential.method.description)),
      ])
    }
    Console.result(.object([("imported", .array(list))]))
  }
}

extension String {
  /// Whether the text is a URI with a secret instead of the name of a file.
  fileprivate var isKeyURI: Bool {
    let scheme = prefix { $0 != ":" }.lowercased()
    return scheme == "otpauth" || scheme == "otpauth-migration"
  }
}

extension CredentialFormat {
  /// Whether the format holds only a secret.
  fileprivate var isBare: Bool {
    switch self {
    case .base32, .hex, .raw: true
    case .otpauth, .migration, .pskc: false
    }
  }
}

extension CredentialFormat: ExpressibleByArgument {}

/// The purposes of a record in options. The parser shows raw values as defaults, and those of ``RecordPurpose`` are
/// numbers.
enum PurposeName: String, CaseIterable, ExpressibleByArgument {
  case otp, seal, host

  var purpose: RecordPurpose {
    switch self {
    case .otp: .otp
    case .seal: .seal
    case .host: .host
    }
  }
}

/// The methods for the codes of a bare secret.
enum BareMethod: String, ExpressibleByArgument, CaseIterable {
  case hotp, totp, ocra
}

/// The options for the account of a file that holds only a secret.
struct BareAccountOptions: ParsableArguments {
  @Option(help: "For a bare secret: the method of its codes, hotp, totp or ocra.")
  var method: BareMethod = .totp

  @Option(help: "For a bare secret: its issuer.")
  var issuer: String = ""

  @Option(help: "For a bare secret: the hash, SHA1, SHA256 or SHA512.")
  var algorithm: HashName = .sha1

  @Option(help: "For a bare secret: the number of digits of its codes, 4 to 10.")
  var digits: Int = 6

  @Option(help: "For a bare secret: the length of a time step in seconds.")
  var period: UInt64 = 30

  @Option(help: "For a bare secret: the first unused counter.")
  var counter: UInt64 = 0

  @Option(help: "For a bare secret: the OCRA suite.")
  var suite: String?

  func account(of user: String) throws(Failure) -> ImportParameters.Account {
    guard counter < maximumInteger else { throw Failure(.usage, "--counter must be below 2^53 - 1") }
    return ImportParameters.Account(issuer: issuer, user: user, method: try codeMethod(), nextCounter: counter)
  }

  private func codeMethod() throws(Failure) -> CodeMethod {
    guard (method == .ocra) == (suite != nil) else {
      throw Failure(.usage, "--method ocra requires --suite, and other methods do not accept it")
    }
    if let suite {
      guard let parsed = OCRASuite(suite) else { throw Failure(badSuite: suite) }
      return .ocra(parsed)
    }
    guard let length = CodeLength(digits) else { throw Failure(.usage, "--digits must be from 4 to 10") }
    guard (1...CodeMethod.maximumPeriodSeconds).contains(period) else {
      throw Failure(.usage, "--period must be from 1 to \(CodeMethod.maximumPeriodSeconds) seconds")
    }
    return method == .hotp ? .hotp(algorithm.hash, length) : .totp(algorithm.hash, length, periodSeconds: period)
  }
}

/// The options for the key of a key container and for its permitted contents.
struct ContainerOptions: ParsableArguments {
  @Option(help: "For an encrypted key container: a file with its key, 16, 24 or 32 bytes.", completion: .file())
  var containerKeyFile: String?

  @Option(
    help: "For an encrypted key container: a file with its passphrase, or - for standard input.", completion: .file())
  var containerPassphraseFile: String?

  @Flag(help: "Import a signed key container although the signature is not checked.")
  var acceptUncheckedSignature = false

  @Flag(help: "Import keys although their limits (dates, number of uses, a PIN policy) are not enforced.")
  var acceptUnenforcedPolicy = false

  func key() throws(Failure) -> ContainerKey {
    guard containerKeyFile == nil || containerPassphraseFile == nil else {
      throw Failure(.usage, "--container-key-file and --container-passphrase-file cannot be combined")
    }
    if let containerKeyFile {
      return .preShared(try SecretInput.read(containerKeyFile, of: "--container-key-file", limit: 32))
    }
    if let containerPassphraseFile {
      return .passphrase(
        try SecretInput.nextLine(
          containerPassphraseFile, of: "--container-passphrase-file", limit: 1024))
    }
    return .none
  }
}
