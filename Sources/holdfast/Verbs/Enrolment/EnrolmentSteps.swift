import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOnline
import HoldfastOpenSSL
import HoldfastProver

/// The options for the app's claims about itself. The service's policy determines name and version from the image, and
/// the claims must agree.
struct AppOptions: ParsableArguments {
  @Option(help: "The name that the app claims, at most 64 bytes. It must match the service's policy.")
  var subject: String?

  @Option(help: "The version that the app claims, three numbers. It must match the service's policy.")
  var appVersion: String?

  func claims() throws(Failure) -> AppClaims {
    AppClaims(
      subject: try subject.map { (text) throws(Failure) in try appName(text, of: "--subject") },
      version: try appVersion.map { (text) throws(Failure) in try AppVersion(argument: text, of: "--app-version") })
  }
}

/// The options for the use of the posture in an enrolment.
struct PostureOptions: ParsableArguments {
  @Flag(help: "Report the findings of holdfast posture about this host to the service, as properties of the evidence.")
  var postureProperties = false

  @Flag(help: "Make the stable findings of holdfast posture a component of the measurement: host.posture.")
  var postureComponent = false

  var use: PostureUse {
    var use: PostureUse = []
    if postureProperties { use.insert(.asProperties) }
    if postureComponent { use.insert(.asComponent) }
    return use
  }
}

/// The options for the ways of measuring that an enrolment permits or demands.
struct MeasuringOptions: ParsableArguments {
  @Flag(help: "Permit proofs to use digests of code that only root can have changed since the process hashed it.")
  var knownCode = false

  @Flag(
    help: """
      Measure executable code by tree digests, whose chunks all processors hash at once. The service must have approved the image with \
      its tree digest.
      """)
  var treeDigests = false
}

extension Prover {
  /// Returns the same prover with another use of the posture, and another measurement policy.
  func with(_ posture: PostureOptions, _ measuring: MeasuringOptions) -> Prover {
    var prover = self
    prover.postureUse = posture.use
    if measuring.knownCode { prover.measurementPolicy.insert(.knownCode) }
    if measuring.treeDigests { prover.measurementPolicy.insert(.treeDigests) }
    return prover
  }
}

extension LiveMeasurement {
  /// Warns if only the device secret distinguishes this host from others.
  func warnOfWeakHost() {
    guard restsOnDeviceSecretAlone else { return }
    Console.warning("only device.secret distinguishes this host from others, as in most containers", .weakHost)
  }
}

/// Parses the name of an app in the value of an option.
func appName(_ text: String, of option: String) throws(Failure) -> BoundedText<64> {
  guard let name = BoundedText<64>(text), !name.isEmpty else {
    throw Failure(.usage, "\(option) must have 1 to 64 bytes")
  }
  return name
}

extension AppVersion {
  /// Parses three numbers in the value of an option.
  init(argument text: String, of option: String) throws(Failure) {
    guard let version = AppVersion(parsing: text) else {
      throw Failure(.usage, "\(option) must be three numbers, such as 1.4.2")
    }
    self = version
  }
}

/// The options for the requests that go to the backend with an attestation token.
struct TokenOptions: ParsableArguments {
  @Option(help: "The format of the token: cose, jose or jose-a256kw. By default, cose.")
  var format: TokenFormat?

  @Flag(
    help:
      "Authenticate the token with a MAC instead of a signature; only with cose. The key is the one from service mac-key."
  )
  var mac = false

  @Option(
    help: "A command that the token allows; may be repeated, at most 16 times. By default, all that the policy allows.")
  var allow: [String] = []

  @Flag(help: "Issue a token that allows no command.")
  var allowNothing = false

  @Option(help: "The number of rounds that may be accepted. By default, any number.")
  var maximumUses: UInt64?

  @Option(help: "The validity of the token, in seconds.")
  var validFor: UInt64?

  @Option(help: "The only user whose codes may accompany the token. By default, any user.")
  var user: String?

  func options() throws(Failure) -> IssuanceOptions {
    var options = IssuanceOptions()
    let format = format ?? .cose
    guard !mac || format == .cose else { throw Failure(.usage, "--mac requires --format cose") }
    options.format = mac ? .macCOSE : format.format
    options.claims[.maximumUses] = maximumUses.map { .number($0) }
    guard (1...maximumInteger).contains(validFor ?? 1) else {
      throw Failure(.usage, "--valid-for must be from 1 to \(maximumInteger) seconds")
    }
    options.validitySeconds = validFor
    if let user {
      guard (1...32).contains(user.utf8.count) else { throw Failure(.usage, "--user must have 1 to 32 bytes") }
      options.claims[.user] = .text(user)
    }
    guard allow.isEmpty || !allowNothing else {
      throw Failure(.usage, "--allow and --allow-nothing cannot be combined")
    }
    if !allow.isEmpty || allowNothing {
      guard allow.allSatisfy({ (1...32).contains($0.utf8.count) }) else {
        throw Failure(.usage, "a command must have 1 to 32 bytes")
      }
      options.claims[.commands] = .texts(allow)
    }
    return options
  }

  /// Returns the wishes for an online service, which decides everything else itself.
  func wishes() throws(Failure) -> TokenWishes {
    guard !mac, !allowNothing, maximumUses == nil, validFor == nil else {
      throw Failure(
        .usage, "an online service decides about MAC, uses and validity itself",
        hint: "leave out --mac, --allow-nothing, --maximum-uses and --valid-for")
    }
    // The checks are the same.
    _ = try options()
    guard allow.count <= 16 else { throw Failure(.usage, "a token can carry at most 16 commands") }
    return TokenWishes(format: format?.rawValue, user: user, commands: allow.isEmpty ? nil : allow)
  }
}

enum TokenFormat: String, ExpressibleByArgument, CaseIterable {
  case cose, jose
  case joseKeyWrap = "jose-a256kw"

  var format: MeasurementTokenFormat {
    switch self {
    case .cose: .cose
    case .jose: .jose
    case .joseKeyWrap: .joseKeyWrap
    }
  }
}

/// A client of the attestation service and backend in a folder.
struct ServiceClient {
  let folder: ServiceFolder

  init(path: String) { folder = ServiceFolder(path: path) }

  /// Exchanges evidence for an attestation token.
  func attest(_ evidence: [UInt8], for device: DeviceDescriptor) throws(Failure) -> [UInt8] {
    var service = try serving(folder.path) { () throws(ServiceFolderFault) in try folder.attestationService() }
    var random = SystemRandom()
    let appraisal: Appraisal
    do throws(AttestationFault) {
      appraisal = try service.appraise(evidence.span, for: device, clock: SystemClock(), random: &random)
    } catch { throw Failure(error, folder: folder.path) }
    switch appraisal {
    case .approved(let token, _): return token
    case .refused(let refusal): throw Failure(refusal)
    }
  }

  /// Exchanges an attestation token for a measurement token.
  func issue(
    _ attestation: [UInt8], for device: DeviceDescriptor, options: IssuanceOptions
  ) throws(Failure) -> MeasurementToken {
    var backend = try serving(folder.path) { () throws(ServiceFolderFault) in try folder.backend() }
    var random = SystemRandom()
    let issuance: Issuance
    do throws(IssuanceFault) {
      issuance = try backend.issue(
        attestation: attestation.span, for: device, options: options, clock: SystemClock(), random: &random)
    } catch { throw Failure(error, folder: folder.path) }
    switch issuance {
    case .issued(let token):
      return MeasurementToken(token.bytes, report: IssuanceReport(token.claims), terms: token.terms)
    case .refused(let refusal): throw Failure(refusal)
    }
  }
}
