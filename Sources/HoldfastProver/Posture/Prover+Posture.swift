import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL

/// The use of the posture in an enrolment. Without any, enrolments are as they always were.
public struct PostureUse: OptionSet, Sendable {
  /// The bits.
  public let rawValue: UInt8

  /// Creates the set with the given bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The findings about the host are properties of the evidence, and so is the id of the host's key for signed statements. The
  /// service decides what it refuses.
  public static let asProperties = PostureUse(rawValue: 1)
  /// The stable findings are the component `host.posture` of the integrity measurement: the enrolment ends when they change.
  public static let asComponent = PostureUse(rawValue: 2)
}

/// The reason why a prover does nothing because of its posture.
public enum PostureFault: Error, Sendable, Equatable {
  /// The installed rules with that number refuse these findings.
  case refused(rules: UInt64, findings: [String])
  /// The installed rules with that number wipe because of these findings: all enrolments of the state folder were removed.
  case wiped(rules: UInt64, findings: [String])
  /// The rules that were to be installed are refused.
  case rules(PostureRulesFault)
}

extension Prover {
  /// Returns the posture of the host and this process, and the verdict of the installed rules; nil if there are none.
  ///
  /// - Throws: ``ProverError/state(_:)`` if the installed rules are damaged or cannot be read.
  public func posture() throws(ProverError) -> (posture: Posture, rules: PostureRules?, verdict: PostureVerdict?) {
    let rules = try postureRules()
    let posture = host.posture()
    return (posture, rules, rules?.judge(posture))
  }

  private func postureRules() throws(ProverError) -> PostureRules? {
    do throws(StateFolderFault) { return try folder.postureRules() } catch { throw .state(error) }
  }

  /// Installs rules about the posture durably. From then on, enrolling and proving follow them, and older rules are refused.
  ///
  /// - Parameters:
  ///   - text: the rules, a compact JWS.
  ///   - issuer: the issuer's key; nil for the one whose rules are installed. Another key than that is refused.
  /// - Throws: ``ProverError/posture(_:)`` if the rules are refused; ``ProverError/state(_:)``.
  public func installPostureRules(_ text: [UInt8], issuer: P256Point?) throws(ProverError) -> PostureRules {
    let outcome: Result<PostureRules, PostureRulesFault>
    do throws(StateFolderFault) {
      outcome = try folder.installPostureRules(text, by: issuer.map { PublicKeyJWK(point: $0) })
    } catch { throw .state(error) }
    do throws(PostureRulesFault) { return try outcome.get() } catch { throw .posture(.rules(error)) }
  }

  /// Applies the installed rules before anything is measured. Without rules, nothing is looked at.
  func checkPosture() throws(ProverError) {
    guard let rules = try postureRules() else { return }
    if let until = rules.until, let now = SystemClock().unixSeconds(), now >= until {
      warn(.outdatedPostureRules(number: rules.number, until: until))
    }
    let verdict = rules.judge(host.posture())
    let wiping = verdict.names(.wipe)
    guard wiping.isEmpty else {
      do throws(StateFolderFault) { try folder.removeEnrolments() } catch { throw .state(error) }
      throw .posture(.wiped(rules: rules.number, findings: wiping))
    }
    let refused = verdict.names(.refuse)
    guard refused.isEmpty else { throw .posture(.refused(rules: rules.number, findings: refused)) }
    let warned = verdict.names(.warn)
    if !warned.isEmpty { warn(.posture(rules: rules.number, findings: warned)) }
  }

  /// Measures for an enrolment, with what ``postureUse`` adds.
  func measureForEnrolment() throws(ProverError) -> LiveMeasurement {
    var measurer = Measurer(keys: keys)
    do throws(MeasurementError) {
      // A baseline hashes everything.
      let policy = measurementPolicy.intersection(.treeDigests)
      var measurement =
        postureUse.contains(.asComponent)
        ? try measurer.measureWithPosture(under: policy, makingDeviceSecret: true)
        : try measurer.measure(under: policy, makingDeviceSecret: true)
      guard postureUse.contains(.asProperties) else { return measurement }
      measurement.add(Posture.ofThisHost().properties + [try Self.postureKeyProperty()])
      return measurement
    } catch { throw .measurement(error) }
  }

  /// The property that names the host's key for signed statements: `posture-key:` and the id of the key, 16 hexadecimal digits.
  private static func postureKeyProperty() throws(MeasurementError) -> BoundedText<32> {
    let point = try PostureKey.ofHost().publicPoint
    var cryptography = OpenSSLCryptography()
    let id: KeyID
    do throws(CryptographyFailure) { id = try keyID(of: point, using: &cryptography) } catch { throw .cryptography }
    guard let property = BoundedText<32>("posture-key:" + hexadecimal(id)) else { throw .cryptography }
    return property
  }
}
