import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastStorage

/// A prover's enrolment for one device: the token, and the baseline that it attests.
struct Enrolment {
  let descriptor: DeviceDescriptor
  let encoding: TokenEncoding
  /// The content of `measurement_config.bin`.
  let configuration: [UInt8]
  let token: [UInt8]
  let fingerprints: BaselineFingerprints
  /// The issuer's report on the token; nil for an enrolment from a version that did not store it.
  var report: IssuanceReport?
  /// Whether the configuration is the one of the enrolment. The device denies any other; this flag explains the denial.
  var hasOwnConfiguration = true

  func decodedConfiguration() throws(MeasurementError) -> MeasurementConfiguration {
    do throws(EncodingFault) { return try MeasurementConfiguration(decoding: configuration.span) } catch {
      throw .malformedConfiguration(error)
    }
  }
}

/// The claims of a measurement token, as the issuer reported them.
///
/// The prover cannot read the token, which is encrypted to the device. The report is not authenticated, and no decision
/// depends on it. It only shows people and programs when to enrol again.
struct IssuanceReport: Equatable {
  let issuer: String
  let subject: String
  let version: AppVersion
  let tokenID: TokenID
  let generation: UInt64
  /// The time of issue, in Unix seconds; `expires` has the same unit.
  let issued: UInt64
  let expires: UInt64
  /// The number of accepted rounds; nil if it is not limited.
  let maximumUses: UInt64?
  /// The permitted commands; nil for all that the device's policy allows.
  let commands: [String]?
  /// The user; nil for any user.
  let user: String?

  init(_ token: IssuedToken) {
    (issuer, subject, version) = (token.issuer.description, token.subject.description, token.version)
    (tokenID, generation, issued, expires) = (token.id, token.generation, token.issuedAt, token.expires)
    (maximumUses, commands, user) = (token.maximumUses, token.commands?.map { $0.description }, token.user?.description)
  }
}

extension IssuanceReport {
  /// The report as an object that has all members in a fixed order.
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

  /// Reads the object of ``json``; nil for anything else and for values that no token can have.
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

/// The present state of an entry in a state folder. It shows people and programs when to enrol again.
struct EnrolmentState {
  let entry: ProverFolder.Entry
  /// The present time, in Unix seconds; nil if there is no clock.
  let now: UInt64?
  /// The enrolment, or the reason why it cannot be used.
  let enrolment: Result<Enrolment, StateFolderFault>

  enum Validity: String {
    /// Nothing known here invalidates the enrolment. The device may have a reason: a newer generation, or no uses left.
    case valid
    case expired
    /// An older version wrote the enrolment and did not store the issuer's report.
    case unknown
    /// The files are damaged, missing or from different enrolments.
    case damaged
    /// This user has no permission to read the files.
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

  /// The remaining validity of the token, in seconds; 0 after it has expired, nil if it is not known.
  var secondsLeft: UInt64? {
    guard let report, let now else { return nil }
    return report.expires > now ? report.expires - now : 0
  }
}
