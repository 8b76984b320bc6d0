import HoldfastCore
import HoldfastStorage

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
