import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct OTPImport: Verb {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Take accounts from otpauth:// and otpauth-migration:// URIs, a PSKC key container, or a bare secret.",
    discussion: "All accounts of the file are taken, or none, and all get the same PIN.",
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

  @Option(help: "otpauth, migration, pskc, base32, hex or raw; the first three are known by their first characters.")
  var format: CredentialFormat?

  @Option(help: "Whose account it is; needed for a bare secret, otherwise in place of the name in the file.")
  var user: String?

  @Option(help: "The record's index, 1 to 8; the lowest free one when absent.")
  var index: Int?

  @Option(help: "What its codes are for: otp, seal or host.")
  var purpose: PurposeName = .otp

  @Option(help: "How many codes ahead the device looks: then no code is shown beyond it.")
  var window: UInt64?

  @Option(help: "The most bytes of a parameter that is sealed, up to 64; 16 characters when absent.")
  var sealFieldBytes: Int?

  @Argument(help: "The file, or - for standard input.", completion: .file())
  var file: String

  mutating func perform() throws(Failure) {
    let credentials = try read()
    guard index == nil || credentials.count == 1 else {
      throw Failure(.usage, "--index is for one account, and there are \(credentials.count)")
    }
    for credential in credentials where credential.isShort {
      Console.warning(
        "the secret of \(credential.user) has \(credential.secret.count) bytes, which is short for its hash")
    }
    let protection = try new.secret()
    for credential in credentials where credential.isText && protection.kind == .pin {
      Console.warning(
        "the secret of \(credential.user) is text and not random bytes: who has the file can tell a wrong PIN by it")
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
        secretGivenTo: "otp import", hint: "give it a file with the URI, or - and the URI on standard input")
    }
    let bytes = try SecretInput.read(file, of: "otp import", limit: Credential.maximumFileByteCount)
    guard let format = format ?? CredentialFormat.detect(bytes.bytes) else {
      throw Failure(
        .usage, "\(SecretInput.name(file)) does not say what it is", hint: "say it: --format base32, hex or raw")
    }
    var parameters = ImportParameters(user: user, containerKey: try container.key())
    parameters.acceptsUncheckedSignature = container.acceptUncheckedSignature
    parameters.acceptsUnenforcedPolicy = container.acceptUnenforcedPolicy
    if format.isBare {
      guard let user else { throw Failure(.usage, "a bare secret does not say whose it is", hint: "give --user NAME") }
      parameters.account = try bare.account(of: user)
    }
    do throws(ImportFault) { return try Credential.read(bytes.bytes, format: format, parameters: parameters) } catch {
      throw Failure(error, in: SecretInput.name(file))
    }
  }

  private func place(_ credentials: [Credential], in folder: Authenticator) throws(AuthenticatorFault) -> [NewRecord] {
    var taken = try folder.records().map { ($0.user, $0.index) }
    var records: [NewRecord] = []
    for credential in credentials {
      let free = Record.indices.first { index in
        !taken.contains { haveSameBytes($0.0, credential.user) && $0.1 == index }
      }
      guard let index = index ?? free else { throw .exists }
      taken.append((credential.user, index))
      records.append(
        NewRecord(
          index: index, purpose: purpose.purpose, credential: credential, lookAheadWindow: window,
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
  @Option(help: "For a bare secret: how its codes are made, hotp, totp or ocra.")
  var method: BareMethod = .totp

  @Option(help: "For a bare secret: who issued it.")
  var issuer: String = ""

  @Option(help: "For a bare secret: SHA1, SHA256 or SHA512.")
  var algorithm: HashName = .sha1

  @Option(help: "For a bare secret: how many digits its codes have, 4 to 10.")
  var digits: Int = 6

  @Option(help: "For a bare secret: the seconds of a time step.")
  var period: UInt64 = 30

  @Option(help: "For a bare secret: the first counter that was not used yet.")
  var counter: UInt64 = 0

  @Option(help: "For a bare secret: the OCRA suite.")
  var suite: String?

  func account(of user: String) throws(Failure) -> ImportParameters.Account {
    guard counter < maximumInteger else { throw Failure(.usage, "--counter is below 2^53 - 1") }
    return ImportParameters.Account(issuer: issuer, user: user, method: try codeMethod(), nextCounter: counter)
  }

  private func codeMethod() throws(Failure) -> CodeMethod {
    guard (method == .ocra) == (suite != nil) else {
      throw Failure(.usage, "--method ocra goes with --suite, and no other does")
    }
    if let suite {
      guard let parsed = OCRASuite(suite) else { throw Failure(badSuite: suite) }
      return .ocra(parsed)
    }
    guard let length = CodeLength(digits) else { throw Failure(.usage, "--digits is from 4 to 10") }
    guard (1...CodeMethod.maximumPeriodSeconds).contains(period) else {
      throw Failure(.usage, "--period is from 1 to \(CodeMethod.maximumPeriodSeconds) seconds")
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

  @Flag(help: "Read a signed key container though nobody here checks by whom it was signed.")
  var acceptUncheckedSignature = false

  @Flag(help: "Take keys whose limits (dates, number of uses, a PIN's policy) nobody here enforces.")
  var acceptUnenforcedPolicy = false

  func key() throws(Failure) -> ContainerKey {
    guard containerKeyFile == nil || containerPassphraseFile == nil else {
      throw Failure(.usage, "--container-key-file and --container-passphrase-file exclude each other")
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
