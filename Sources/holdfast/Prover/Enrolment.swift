import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastStorage

/// A prover's enrolment for one device: the token, and the baseline that the token is about.
struct Enrolment {
  let descriptor: DeviceDescriptor
  let encoding: TokenEncoding
  /// `measurement_config.bin`.
  let configuration: [UInt8]
  let token: [UInt8]
  let fingerprints: BaselineFingerprints
  /// The issuer's own account of the token; nil where the enrolment was written before it was kept.
  var report: IssuanceReport?
  /// Whether this is the configuration that the enrolment was made with. The device denies another one; this tells why.
  var hasOwnConfiguration = true

  func decodedConfiguration() throws(MeasurementError) -> MeasurementConfiguration {
    do throws(EncodingFault) { return try MeasurementConfiguration(decoding: configuration.span) } catch {
      throw .malformedConfiguration(error)
    }
  }
}

/// Claims of a measurement token as the issuer reported them when it issued the token.
///
/// The prover cannot read the token, which is encrypted to the device. Nothing authenticates this report, and no decision rests
/// on it: it is for people and programs that ask when to enrol again.
struct IssuanceReport: Equatable {
  let issuer: String
  let subject: String
  let version: AppVersion
  let tokenID: TokenID
  let generation: UInt64
  /// Unix seconds, as is `expires`.
  let issued: UInt64
  let expires: UInt64
  /// Nil for any number of accepted rounds.
  let maximumUses: UInt64?
  /// Nil for all that the device's policy allows.
  let commands: [String]?
  /// Nil for any user.
  let user: String?

  init(_ token: IssuedToken) {
    (issuer, subject, version) = (token.issuer.description, token.subject.description, token.version)
    (tokenID, generation, issued, expires) = (token.id, token.generation, token.issuedAt, token.expires)
    (maximumUses, commands, user) = (token.maximumUses, token.commands?.map { $0.description }, token.user?.description)
  }
}

extension IssuanceReport {
  /// The report's members, in their order; all of them are there.
  var json: JSONValue {
    .object([
      ("issuer", .string(issuer)), ("subject", .string(subject)),
      ("version", .array([version.major, version.minor, version.patch].map { .integer($0) })),
      ("token_id", .string(hexadecimal(tokenID))), ("generation", .integer(generation)), ("issued", .integer(issued)),
      ("expires", .integer(expires)), ("maximum_uses", maximumUses.map { .integer($0) } ?? .null),
      ("commands", commands.map { .array($0.map { .string($0) }) } ?? .null),
      ("user", user.map { .string($0) } ?? .null),
    ])
  }

  static let names = [
    "issuer", "subject", "version", "token_id", "generation", "issued", "expires", "maximum_uses", "commands", "user",
  ]

  /// Reads what ``json`` gives; nil for anything else, and for what no token can say.
  init?(_ value: JSONValue) {
    guard value.hasOnly(Self.names), value.members?.count == Self.names.count,
      let issuer = value["issuer"]?.text, issuer.utf8.count <= 64,
      let subject = value["subject"]?.text, subject.utf8.count <= 64,
      let numbers = value["version"]?.elements?.map(\.number), numbers.count == 3,
      let major = numbers[0], let minor = numbers[1], let patch = numbers[2],
      let tokenID: TokenID = value["token_id"]?.text.flatMap(fixedBytes(hexadecimal:)),
      let generation = value["generation"]?.number, let issued = value["issued"]?.number,
      let expires = value["expires"]?.number, issued < expires
    else { return nil }
    (self.issuer, self.subject, self.tokenID) = (issuer, subject, tokenID)
    version = AppVersion(major: major, minor: minor, patch: patch)
    (self.generation, self.issued, self.expires) = (generation, issued, expires)
    switch value["maximum_uses"] {
    case .null?: maximumUses = nil
    case .integer(let number)?: maximumUses = number
    default: return nil
    }
    switch value["user"] {
    case .null?: user = nil
    case .string(let text)? where (1...32).contains(text.utf8.count): user = text
    default: return nil
    }
    switch value["commands"] {
    case .null?: commands = nil
    case .array(let elements)? where elements.count <= 16:
      let texts = elements.compactMap(\.text).filter { (1...32).contains($0.utf8.count) }
      guard texts.count == elements.count else { return nil }
      commands = texts
    default: return nil
    }
  }
}

/// An entry of a state folder as it is at one moment, for people and programs that ask when to enrol again.
struct EnrolmentState {
  let entry: ProverFolder.Entry
  /// Unix seconds; nil where there is no clock.
  let now: UInt64?
  /// The enrolment, or the reason for which it cannot serve.
  let enrolment: Result<Enrolment, StateFolderFault>

  enum Validity: String {
    /// Nothing speaks against it here. The device may know of a reason: a newer generation, or no uses left.
    case valid
    case expired
    /// An older version wrote the enrolment, and did not keep the issuer's report.
    case unknown
    /// Its files are damaged, missing or not of one enrolment.
    case damaged
    /// This user has no permission to read its files.
    case unreadable
  }

  init(_ entry: ProverFolder.Entry, now: UInt64?) {
    self.entry = entry
    self.now = now
    do throws(StateFolderFault) {
      let enrolment = try entry.load()
      self.enrolment =
        enrolment.hasOwnConfiguration
        ? .success(enrolment) : .failure(entry.folder.damaged(EnrolmentFolder.configurationName))
    } catch { enrolment = .failure(error) }
  }

  var report: IssuanceReport? {
    if case .success(let enrolment) = enrolment { enrolment.report } else { nil }
  }

  var validity: Validity {
    if case .failure(let fault) = enrolment {
      guard case .file(let error) = fault else { return .damaged }
      return error.kind == .noPermission || error.kind == .wrongOwner ? .unreadable : .damaged
    }
    guard let report, let now else { return .unknown }
    return report.expires <= now ? .expired : .valid
  }

  /// How long the token still counts; 0 once it has expired, and nil where that is not known.
  var secondsLeft: UInt64? {
    guard let report, let now else { return nil }
    return report.expires > now ? report.expires - now : 0
  }
}
