import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastJSON
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
  /// Whether it is a URI with a secret, rather than the name of a file.
  fileprivate var isKeyURI: Bool {
    let scheme = prefix { $0 != ":" }.lowercased()
    return scheme == "otpauth" || scheme == "otpauth-migration"
  }
}

extension CredentialFormat {
  /// Whether it is a secret and nothing else.
  fileprivate var isBare: Bool {
    switch self {
    case .base32, .hex, .raw: true
    case .otpauth, .migration, .pskc: false
    }
  }
}
