import HoldfastCore
import HoldfastFormats

/// Settings that an issuer gives an app together with a token.
public typealias AppSettings = HoldfastFormats.AppSettings
/// A rule about the version of the app or of its operating system.
public typealias ComplianceRule = HoldfastFormats.ComplianceRule
/// A version of numbers with dots between them.
public typealias DottedVersion = HoldfastFormats.DottedVersion

/// A version that does not comply with a rule of the issuer.
public struct ComplianceFinding: Sendable, Equatable {
  /// The rule.
  public let rule: ComplianceRule
  /// The version; nil if the host's system does not say, or not in numbers.
  public let version: DottedVersion?
  /// The consequence: the rule's action, but never to wipe because of a version that is not known.
  public let action: ComplianceRule.Action
}

/// The reasons why a prover itself refuses to prove, whatever the device would say.
public enum ProofRefusal: Sendable, Equatable {
  /// The prover has not enrolled for longer than the issuer allows. The limit was at `until`, in Unix seconds.
  case offlineLimit(DeviceID, until: UInt64)
  /// A version does not comply with a rule that blocks. Another enrolment may have other rules.
  case notCompliant(DeviceID, ComplianceFinding)
  /// A version did not comply with a rule that wipes, and the enrolment was removed.
  case wiped(DeviceID, ComplianceFinding)
}

/// The offline limit of an enrolment at one moment.
public struct OfflineLimit: Sendable, Equatable {
  /// The time for which the issuer allows to be offline, in seconds.
  public let seconds: UInt64
  /// The time at which the limit is reached, in Unix seconds.
  public let until: UInt64
  /// The time that is left, in seconds; 0 once the limit is reached.
  public let secondsLeft: UInt64

  /// Whether proofs are refused.
  public var isReached: Bool { secondsLeft == 0 }
  /// Whether the last tenth of the time has begun.
  public var isNear: Bool { secondsLeft <= seconds / 10 }

  /// The limit of terms at a time; nil if they have none.
  package init?(_ terms: Terms, now: UInt64) {
    guard let seconds = terms.conditions.offlineSeconds, let until = terms.offlineUntil else { return nil }
    (self.seconds, self.until) = (seconds, until)
    secondsLeft = until > now ? until - now : 0
  }
}

extension Terms {
  /// Returns the rules that are not met, with the gravest consequence first.
  ///
  /// - Parameter release: Returns the bytes of `/etc/os-release`; called only if there is a rule about the system.
  package func findings(release: () -> [UInt8]?) -> [ComplianceFinding] {
    guard !conditions.rules.isEmpty else { return [] }
    let system =
      conditions.rules.contains { $0.subject == .os } ? release().map { OperatingSystem(release: $0) } : nil
    let found = conditions.rules.compactMap { (rule) -> ComplianceFinding? in
      if rule.subject == .os, let wanted = rule.system, let system, !haveSameBytes(system.id, wanted) { return nil }
      let known = rule.subject == .app ? DottedVersion(version.text) : system?.version
      guard let known else {
        return ComplianceFinding(rule: rule, version: nil, action: min(rule.action, .block))
      }
      return rule.isMet(by: known) ? nil : ComplianceFinding(rule: rule, version: known, action: rule.action)
    }
    return found.sorted { $0.action > $1.action }
  }
}

/// The check of the terms of one enrolment, before anything is sent to its device.
struct TermsCheck {
  let folder: ProverFolder
  let host: HostSource
  let warn: (ProverWarning) -> Void

  /// The tolerance for a clock that is behind, in seconds: clocks of hosts and devices differ a little.
  private static let toleranceSeconds: UInt64 = 60

  /// Checks an enrolment, and warns of what will soon be refused.
  ///
  /// - Throws: ``ProverError/refused(_:)``; ``ProverError/state(_:)`` if the latest time is not known, or an enrolment could not
  ///   be removed.
  func check(_ enrolment: Enrolment) throws(ProverError) {
    guard let terms = enrolment.terms?.terms else { return }
    let device = enrolment.descriptor.deviceID
    try checkVersions(terms, device, wiping: enrolment)
    guard terms.conditions.offlineSeconds != nil else { return }
    let now = try present(device)
    guard let limit = OfflineLimit(terms, now: now) else { return }
    guard !limit.isReached else { throw .refused(.offlineLimit(device, until: limit.until)) }
    if limit.isNear { warn(.offlineLimitNear(device, limit)) }
  }

  /// Checks the versions.
  ///
  /// - Parameter enrolment: the enrolment that a rule may wipe, which is removed before this throws; nil if a rule may only block.
  ///   One that has replaced it meanwhile stays, because it may have other rules.
  func checkVersions(_ terms: Terms, _ device: DeviceID, wiping enrolment: Enrolment?) throws(ProverError) {
    for finding in terms.findings(release: host.release) {
      switch finding.action {
      case .wipe:
        guard let enrolment else { throw .refused(.notCompliant(device, finding)) }
        let isRemoved: Bool
        do throws(StateFolderFault) { isRemoved = try folder.remove(enrolment) } catch { throw .state(error) }
        throw .refused(isRemoved ? .wiped(device, finding) : .notCompliant(device, finding))
      case .block: throw .refused(.notCompliant(device, finding))
      case .warn: warn(.notCompliant(device, finding))
      }
    }
  }

  /// Returns the present time, recorded. If the disk refuses it, the prover goes on, as it does without a new request number.
  private func present(_ device: DeviceID) throws(ProverError) -> UInt64 {
    do throws(StateFolderFault) {
      let place = try folder.requiredEntry(of: device).folder
      let known = try place.latestTime()
      let floor = known.floor(host.uptime())
      if let clock = host.unixSeconds(), clock + Self.toleranceSeconds < floor {
        warn(.clockBehind(device, clock: clock, latest: floor))
      }
      do throws(StateFolderFault) { return try place.raiseLatestTime(host) } catch {
        guard case .file(let fault) = error, [.readOnly, .noPermission, .diskFull].contains(fault.kind) else {
          throw error
        }
        warn(.unrecordedTime(error))
        return known.present(host)
      }
    } catch { throw .state(error) }
  }

  /// Records the clock of a device that has proved itself.
  func learn(deviceClock seconds: UInt64, of enrolment: Enrolment) {
    guard enrolment.terms?.terms.conditions.offlineSeconds != nil else { return }
    do throws(StateFolderFault) {
      // An enrolment that another process has removed meanwhile needs no record.
      guard let entry = try folder.entry(of: enrolment.descriptor.deviceID) else { return }
      try entry.folder.raiseLatestTime(host, to: seconds)
    } catch { warn(.unrecordedTime(error)) }
  }
}
