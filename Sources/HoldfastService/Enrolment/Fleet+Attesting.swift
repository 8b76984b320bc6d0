import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

/// The service's answer to evidence.
package enum AttestationAnswer: Sendable, Equatable {
  /// The app is approved.
  case attested(Attestation)
  /// The app is not approved.
  case refused(Refusal)
  /// The app named a domain for which there is no such token.
  case unavailable(DomainRefusal)
}

/// The wishes of an app for its attestation token, in addition to the device.
package struct AttestationWishes: Sendable, Equatable {
  /// The API domain whose audience the token has; nil for the policy's audience.
  package var domain: String?
  /// The digest of the app's data that the token is bound to, 32 bytes.
  package var hash: Digest?
  /// The code that proves the knowledge of the development key, 32 bytes.
  package var development: Digest?

  /// Creates wishes for a token with the policy's audience that is bound to the device only.
  package init() {}
}

extension Fleet {
  /// The time for which an appraised baseline may be attested again, in seconds: as long as an operator's decision counts.
  static let baselineSeconds: UInt64 = 24 * 3600

  /// Appraises evidence, and issues an attestation token for one device.
  ///
  /// A baseline is new only once: its time must be within five minutes of the service's clock. For 24 hours after that, the
  /// same evidence is attested again for the same device, so that a lost answer does no harm and an operator has time to
  /// decide.
  ///
  /// - Parameters:
  ///   - evidence: The evidence, at most 65,536 bytes. It is not stored: the measurements can be computed from it.
  ///   - device: The device for which the app wants a measurement token. It need not be registered.
  ///   - wishes: The wishes of the app for the token.
  package func attest(
    _ evidence: [UInt8], for device: DeviceDescriptor, wishes: AttestationWishes = AttestationWishes()
  ) throws(FleetFault) -> AttestationAnswer {
    let presented: PresentedEvidence
    do throws(AppraisalError) {
      presented = try PresentedEvidence(evidence, by: device.deviceID, development: wishes.development)
    } catch {
      if case .cryptography = error { throw .cryptography }
      return .refused(.notEvidence)
    }
    return try transaction { (session) throws(FleetFault) in
      let keys = try self.keys(in: session)
      var audience: BoundedText<255>?
      if let name = wishes.domain {
        guard let domain = keys.apps.domains[name] else { return .unavailable(.unknownDomain) }
        guard domain.hasMeasurement else { return .unavailable(.domainWithoutMeasurement) }
        audience = domain.audience
      }
      switch try self.appraise(presented, with: keys, in: session) {
      case .refused(let refusal, _): return .refused(refusal)
      case .approved(let app):
        return .attested(
          try keys.withSigner { (signer) throws(FleetFault) in
            var random = SystemRandom()
            do throws(CryptographyFailure) {
              return try signer.attest(
                app.evidence, of: app.approval, keys: app.release, for: device, audience: audience, hash: wishes.hash,
                under: keys.policy, now: session.now, random: &random)
            } catch { throw .cryptography }
          })
      }
    }
  }
}
