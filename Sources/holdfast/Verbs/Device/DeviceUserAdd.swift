import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct DeviceUser: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "user", abstract: "Add, list, unlock and remove the users whose codes a device accepts.",
    examples: [
      "holdfast device user add --dir lock alice",
      "holdfast device user list --dir lock",
    ],
    subcommands: [
      DeviceUserAdd.self, DeviceUserList.self, DeviceUserLock.self, DeviceUserUnlock.self, DeviceUserRemove.self,
    ])
}

struct DeviceUserAdd: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add a user: print an activation code, or import secrets.",
    discussion: """
      The code is valid for ten minutes and one use, and anyone who sees it can become the user. The user types it into: \
      holdfast otp activate --connect ENDPOINT --authenticator keys --code -
      """,
    examples: [
      "holdfast device user add --dir lock alice",
      "holdfast device user add --dir lock --otp hotp --digits 8 --replace alice",
      "holdfast device user add --dir lock --otp-secret secret.hex --seal none bob",
      "holdfast device user add --dir lock --demand-pin-length 6 --demand-key carol",
      "holdfast device user add --dir lock --spare alice",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var methods: MethodOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The user's name, at most 32 bytes, without #.")
  var name: String

  @Flag(help: "Replace the user with that name, whose secrets and spare authenticators are then forgotten.")
  var replace = false

  @Flag(
    help:
      "Add a spare authenticator of a user who exists, at most two; its codes name NAME#2 or NAME#3, and it shares the user's lockout."
  )
  var spare = false

  @OptionGroup var demands: DemandOptions

  @Option(
    help: "A file with the secret of the one-time passwords, instead of an activation; - is standard input.",
    completion: .file())
  var otpSecret: String?

  @Option(
    help: "A file with the secret of the seals, instead of an activation; - is standard input.", completion: .file())
  var sealSecret: String?

  @Option(help: "The format of those files: hex, base32 or raw.")
  var format: SecretFormat = .hex

  @Option(help: "The first counter of an --otp-secret for --otp hotp. Used codes of a replaced secret stay used.")
  var counter: UInt64?

  func check() throws(Failure) {
    _ = try BoundedText<32>(userArgument: name)
    guard !name.utf8.contains(UInt8(ascii: "#")) else {
      throw Failure(
        .usage, "a new user's name has no #, which stands in the names of spare authenticators",
        hint: "--spare adds a spare authenticator of a user")
    }
    let isImport = otpSecret != nil || sealSecret != nil
    guard try demands.demand() == nil || !isImport else {
      throw Failure(.usage, "imported secrets are in an authenticator already: a demand needs an activation")
    }
    guard !spare || !(isImport || replace) else {
      throw Failure(.usage, "--spare is activated with a code, and cannot be combined with --replace or secrets")
    }
    guard counter == nil || (otpSecret != nil && methods.otp == .hotp) else {
      throw Failure(.usage, "--counter requires --otp hotp and --otp-secret")
    }
    guard otpSecret != "-" || sealSecret != "-" else {
      throw Failure(.usage, "standard input provides only one secret: give the other one in a file")
    }
  }

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    let user = try BoundedText<32>(userArgument: name)
    let ledger = try owned.ledger()
    if otpSecret != nil || sealSecret != nil {
      try take(user, into: ledger)
    } else {
      try activate(user, ledger)
    }
  }

  private func activate(_ name: BoundedText<32>, _ ledger: some OwnerLedger) throws(Failure) {
    let chosen = ByPurpose(otp: try methods.otpMethod(), seal: try methods.sealMethod())
    let terms = ActivationTerms(demand: try demands.demand(), main: spare ? name : nil)
    let user = try spare ? recording { () throws(LedgerFault) in try ledger.nextSpare(of: name) } : name
    let now = SystemClock().unixSeconds()
    let code = try recording { () throws(LedgerFault) in
      var random = SystemRandom()
      return try ledger.issueActivation(
        of: user, chosen, replaces: replace, terms: terms, realClock: now, random: &random)
    }
    Console.result(user, code: code, json: output.json)
    Console.note(
      "\(user) activates with this code, where ENDPOINT is this device's endpoint: "
        + "holdfast otp activate --connect ENDPOINT --authenticator keys --code -")
  }

  private func take(_ user: BoundedText<32>, into ledger: some OwnerLedger) throws(Failure) {
    var accounts: [NewAccount] = []
    if let otpSecret {
      guard let method = try methods.otpMethod() else {
        throw Failure(.usage, "--otp none does not accept --otp-secret")
      }
      if case .ocra = method {
        throw Failure(
          .usage, "passwords over a challenge need an activation", hint: "only an activated user can get a challenge")
      }
      accounts.append(try account(.otp, method, from: otpSecret, of: "--otp-secret", counter: counter ?? 0))
    }
    if let sealSecret {
      guard let method = try methods.sealMethod() else {
        throw Failure(.usage, "--seal none does not accept --seal-secret")
      }
      accounts.append(try account(.seal, method, from: sealSecret, of: "--seal-secret", counter: 0))
    }
    let now = SystemClock().unixSeconds()
    let taken = accounts
    try recording { () throws(LedgerFault) in
      try ledger.addUser(user, taken, replaces: replace, realClock: now)
    }
    if output.json {
      Console.result(.object([("user", .string(user.description)), ("state", .string("added"))]))
    } else {
      Console.result("user \(user): added")
    }
  }

  private func account(
    _ purpose: CodePurpose, _ method: CodeMethod, from path: String, of option: String, counter: UInt64
  ) throws(Failure) -> NewAccount {
    let secret = try format.read(path, of: option)
    if secret.count < 16 {
      Console.warning(
        "the secret in \(SecretInput.name(path)) has \(secret.count) bytes; RFC 4226 requires at least 16")
    }
    guard let account = NewAccount(purpose: purpose, method: method, nextPosition: counter, secret: secret) else {
      throw Failure(
        .malformed, "\(path): a secret must have 1 to 64 bytes, and a counter must be at most \(maximumInteger)")
    }
    return account
  }
}

extension Console {
  /// Prints a code from the device's owner, which is the result.
  static func result(_ user: BoundedText<32>, code: borrowing OneUseCode, json: Bool) {
    var bytes: [UInt8] = []
    code.write(into: &bytes)
    let text = String(decoding: bytes, as: UTF8.self)
    if json {
      result(
        .object([
          ("user", .string(user.description)), ("code", .string(text)),
          ("seconds_remaining", .integer(Ledger.codeLifetimeSeconds)),
        ]))
    } else {
      result(text)
      note("the code is valid for ten minutes and one use")
    }
  }
}

/// The options for the protection that a user's authenticator must have.
struct DemandOptions: ParsableArguments {
  @Option(help: "Demand that the authenticator protects the secrets with a PIN of at least this many digits, 4 to 6.")
  var demandPinLength: Int?

  @Flag(help: "Demand that the authenticator protects the secrets with a key, instead of or in addition to a PIN.")
  var demandKey = false

  func demand() throws(Failure) -> ProtectionDemand? {
    let lengths = PIN.lengths
    guard lengths.contains(demandPinLength ?? lengths.lowerBound) else {
      throw Failure(
        .usage, "--demand-pin-length must be from \(lengths.lowerBound) to \(lengths.upperBound)")
    }
    return ProtectionDemand(pinLength: demandPinLength, needsKey: demandKey)
  }
}

extension ProtectionDemand {
  /// The demand in words, such as `a PIN of at least 6 digits and a key`.
  var text: String {
    let pin = pinLength.map { ["a PIN of at least \($0) digits"] } ?? []
    return (pin + (needsKey ? ["a key"] : [])).joined(separator: " and ")
  }
}

/// The options for the methods of a user's codes.
struct MethodOptions: ParsableArguments {
  @Option(
    help:
      "One-time passwords: totp, hotp, none, or an OCRA suite, whose passwords answer a challenge of the device on one connection."
  )
  var otp: PasswordKind = .totp

  @Option(help: "The hash of the one-time passwords: SHA1, SHA256 or SHA512.")
  var algorithm: HashName = .sha1

  @Option(help: "The number of digits of the one-time passwords, 4 to 10.")
  var digits: Int = 6

  @Option(help: "The length of a time step in seconds, 1 to 86400.")
  var period: UInt64 = 30

  @Option(help: "The OCRA suite of seals, or none.")
  var seal: String = "OCRA-1:HOTP-SHA256-8:QH64-T1M"

  enum PasswordKind: ExpressibleByArgument, Equatable {
    case totp, hotp, none
    case ocra(OCRASuite)

    init?(argument: String) {
      switch argument {
      case "totp": self = .totp
      case "hotp": self = .hotp
      case "none": self = .none
      default:
        guard let suite = OCRASuite(argument) else { return nil }
        self = .ocra(suite)
      }
    }

    var defaultValueDescription: String { "totp" }
  }

  func otpMethod() throws(Failure) -> CodeMethod? {
    guard let length = CodeLength(digits) else { throw Failure(.usage, "--digits must be from 4 to 10") }
    switch otp {
    case .none: return nil
    case .ocra(let suite): return .ocra(suite)
    case .hotp: return .hotp(algorithm.hash, length)
    case .totp:
      guard (1...CodeMethod.maximumPeriodSeconds).contains(period) else {
        throw Failure(.usage, "--period must be from 1 to \(CodeMethod.maximumPeriodSeconds) seconds")
      }
      return .totp(algorithm.hash, length, periodSeconds: period)
    }
  }

  func sealMethod() throws(Failure) -> CodeMethod? {
    guard seal != "none" else { return nil }
    guard let suite = OCRASuite(seal) else { throw Failure(.usage, "--seal must be an OCRA suite of RFC 6287") }
    return .ocra(suite)
  }
}
