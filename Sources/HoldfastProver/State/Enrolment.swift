import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement
import HoldfastLinux
import HoldfastOnline

/// A prover's enrolment for one device: the token, and the baseline that it attests.
package struct Enrolment: Sendable {
  package let descriptor: DeviceDescriptor
  package let encoding: TokenEncoding
  /// The content of `measurement_config.bin`.
  package let configuration: [UInt8]
  package let token: [UInt8]
  package let fingerprints: BaselineFingerprints
  /// The issuer's report on the token; nil for an enrolment from a version that did not store it.
  package var report: IssuanceReport?
  /// The issuer's terms, whose signature was verified; nil if the issuer gave none.
  package var terms: SignedTerms?
  /// The online service that issued the token; nil if it came in another way, or an older version did not store it.
  package var service: ServiceAddress?
  /// Whether the configuration is the one of the enrolment. The device denies any other; this flag explains the denial.
  package var hasOwnConfiguration = true

  /// Creates an enrolment that has its own configuration.
  package init(
    descriptor: DeviceDescriptor, encoding: TokenEncoding, configuration: [UInt8], token: [UInt8],
    fingerprints: BaselineFingerprints, report: IssuanceReport?, terms: SignedTerms? = nil,
    service: ServiceAddress? = nil
  ) {
    (self.descriptor, self.encoding, self.configuration) = (descriptor, encoding, configuration)
    (self.token, self.fingerprints, self.report) = (token, fingerprints, report)
    (self.terms, self.service) = (terms, service)
  }

  package func decodedConfiguration() throws(MeasurementError) -> MeasurementConfiguration {
    do throws(EncodingFault) { return try MeasurementConfiguration(decoding: configuration.span) } catch {
      throw .malformedConfiguration(error)
    }
  }

  /// The ways of measuring that the baseline permits; none if its configuration cannot be read.
  var measurementPolicy: MeasurementPolicy { (try? decodedConfiguration())?.policy ?? [] }
}

/// The present state of an entry in a state folder. It shows people and programs when to enrol again.
public struct EnrolmentState: Sendable {
  package let entry: ProverFolder.Entry
  /// The present time, in Unix seconds; nil if there is no clock.
  package let now: UInt64?
  /// The enrolment, or the reason why it cannot be used.
  package let enrolment: Result<Enrolment, StateFolderFault>
  /// The time for which the issuer allows to be offline, and what is left of it; nil if there is no limit.
  ///
  /// The later of the present time and of the latest time of the enrolment counts: a clock that was set back changes nothing.
  public let offlineLimit: OfflineLimit?
  /// The issuer's rules that are not met, with the gravest consequence first.
  public let complianceFindings: [ComplianceFinding]

  /// The device, as the state folder names it.
  public var device: DeviceID { entry.device }

  /// Whether the enrolment can be used, as far as it is known here.
  public enum Validity: String, Sendable {
    /// Nothing known here invalidates the enrolment. The device may have a reason: a newer generation, or no uses left.
    case valid
    /// The token has expired.
    case expired
    /// The time for which the issuer allows to be offline is over: the prover proves nothing until it is enrolled again.
    case offlineLimit
    /// A version does not comply with a rule of the issuer that blocks or wipes.
    case notCompliant
    /// An older version wrote the enrolment and did not store the issuer's report.
    case unknown
    /// The files are damaged, missing or from different enrolments.
    case damaged
    /// This user has no permission to read the files.
    case unreadable
  }

  /// Reads an entry.
  ///
  /// - Parameters:
  ///   - now: The present time, in Unix seconds; nil if there is no clock.
  ///   - host: The source of the other facts.
  package init(_ entry: ProverFolder.Entry, now: UInt64?, host: HostSource = .system) {
    self.entry = entry
    self.now = now
    var (limit, findings): (OfflineLimit?, [ComplianceFinding]) = (nil, [])
    do throws(StateFolderFault) {
      let enrolment = try entry.load()
      if let terms = enrolment.terms?.terms {
        if terms.conditions.offlineSeconds != nil {
          let latest = try entry.folder.latestTime()
          limit = OfflineLimit(terms, now: max(latest.floor(host.uptime()), now ?? 0))
        }
        findings = terms.findings(release: host.release)
      }
      self.enrolment =
        enrolment.hasOwnConfiguration
        ? .success(enrolment) : .failure(entry.folder.damaged(EnrolmentFolder.configurationName))
    } catch { enrolment = .failure(error) }
    (offlineLimit, complianceFindings) = (limit, findings)
  }

  /// The issuer's settings for the app; nil if there are none, or the enrolment cannot be used.
  ///
  /// They are signed by the issuer whose terms the enrolment has. The next enrolment replaces them.
  public var settings: AppSettings? {
    if case .success(let enrolment) = enrolment { enrolment.terms?.terms.conditions.settings } else { nil }
  }

  /// The online service that issued the token; nil if that is not known.
  package var service: ServiceAddress? {
    if case .success(let enrolment) = enrolment { enrolment.service } else { nil }
  }

  package var report: IssuanceReport? {
    if case .success(let enrolment) = enrolment { enrolment.report } else { nil }
  }

  /// Whether the enrolment can be used.
  public var validity: Validity {
    if case .failure(let fault) = enrolment {
      guard case .file(let error) = fault else { return .damaged }
      return error.kind == .noPermission || error.kind == .wrongOwner ? .unreadable : .damaged
    }
    if offlineLimit?.isReached == true { return .offlineLimit }
    if complianceFindings.first.map({ $0.action >= .block }) == true { return .notCompliant }
    guard let report, let now else { return .unknown }
    return report.expires <= now ? .expired : .valid
  }

  /// The remaining validity of the token, in seconds; 0 after it has expired, nil if it is not known.
  public var secondsLeft: UInt64? {
    guard let report, let now else { return nil }
    return report.expires > now ? report.expires - now : 0
  }
}
