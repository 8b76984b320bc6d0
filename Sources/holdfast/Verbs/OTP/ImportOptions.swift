import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore

extension CredentialFormat: ExpressibleByArgument {}

/// The purpose of a record as options name it. The parser shows raw values as defaults, and those of ``RecordPurpose`` are
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

/// How the codes of a secret that stands alone are made.
enum BareMethod: String, ExpressibleByArgument, CaseIterable {
  case hotp, totp, ocra
}

/// The account of a secret that stands alone in its file.
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

/// What opens a key container, and what is let through of it.
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
