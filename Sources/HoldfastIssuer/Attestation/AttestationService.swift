import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// An attestation service, which appraises evidence against a policy and issues attestation tokens. It simulates a
/// vendor's service.
///
/// Source: RFC 9334 §4.1, where its role is the *verifier*. Only one thread at a time may use it.
package struct AttestationService<Seen: SeenConfigurations & ~Copyable>: ~Copyable {
  var signer: AttestationSigner
  let releases: ReleaseKeyRegistry
  /// The owner's rules.
  package let policy: ServicePolicy
  var seen: Seen

  /// Creates a service.
  ///
  /// - Parameters:
  ///   - account: The account secret, at least 32 bytes.
  ///   - signing: The key that signs attestation tokens.
  ///   - encryption: The backend's key, of which only the encrypting half is used.
  ///   - releases: The keys of the approved releases.
  ///   - policy: The owner's rules.
  ///   - seen: The durable record of appraised configurations.
  package init(
    account: consuming SecretBytes, signing: consuming JWSKey, encryption: consuming JWEKey,
    releases: consuming ReleaseKeyRegistry, policy: ServicePolicy, seen: consuming Seen
  ) {
    signer = AttestationSigner(account: account, signing: signing, encryption: encryption)
    self.releases = releases
    self.policy = policy
    self.seen = seen
  }

  /// Appraises evidence. If the app is approved, its token is bound to `device`.
  ///
  /// The service computes both measurements itself.
  ///
  /// - Parameters:
  ///   - evidence: The result of `Evidence.encoded(authenticatedWith:using:)`.
  ///   - device: The device for which the app wants a measurement token.
  ///   - hash: The digest of the app's data that the token is bound to, 32 bytes; nil for none.
  /// - Throws: The condition that prevents an appraisal; a refusal is not an error.
  package mutating func appraise(
    _ evidence: Span<UInt8>, for device: DeviceDescriptor, hash: Digest? = nil, clock: borrowing some Clock & ~Copyable,
    random: inout some RandomSource & ~Copyable
  ) throws(AttestationFault) -> Appraisal {
    guard let now = clock.unixSeconds() else { throw .noClock }
    var cryptography = OpenSSLCryptography()
    let authentic: Evidence
    do throws(EvidenceFault) {
      authentic = try AuthenticEvidence(opening: evidence, using: &cryptography) { releases.evidenceKey($0) }.evidence
    } catch {
      switch error {
      case .malformed: throw .malformed
      case .unknownKey: return .refused(.unknownProofKey)
      case .notAuthentic: return .refused(.notAuthentic)
      }
    }
    let image: ApprovedImage
    let defaultKey: KeyID
    do throws(CryptographyFailure) { defaultKey = try ReleaseKeys(of: ReleaseRoots.default().root(at: 0)).id } catch {
      throw .cryptography
    }
    do throws(AttestationRefusal) {
      image = try authentic.approval(
        policy.images.first { $0.isApproval(of: authentic.image) }, defaultKey: defaultKey,
        refusing: policy.refusedProperties, permitting: policy.measurementPolicy, now: now)
    } catch { return .refused(error) }
    do throws(ServiceLedgerFault) {
      let configuration = authentic.configuration
      guard try seen.take(configuration.salt, created: configuration.created) else { return .refused(.repeated) }
    } catch { throw .ledger(error) }
    do throws(CryptographyFailure) {
      guard let keys = try releases.keys(authentic.configuration.mpkID) else { throw CryptographyFailure() }
      let attestation = try signer.attest(
        authentic, of: image, keys: keys, for: device, hash: hash, under: policy, now: now, random: &random)
      return .approved(token: attestation.token, responseCode: attestation.responseCode)
    } catch { throw .cryptography }
  }
}

/// The result of an appraisal.
package enum Appraisal: Sendable, Equatable {
  /// The app is approved. The values are the attestation token and its response code for the log.
  case approved(token: [UInt8], responseCode: BoundedText<16>)
  /// The app is not approved.
  case refused(AttestationRefusal)
}

/// The reasons why the service could not appraise evidence.
package enum AttestationFault: Error, Equatable {
  /// The bytes are not evidence.
  case malformed
  /// There is no clock to check the freshness with.
  case noClock
  /// The durable record failed.
  case ledger(ServiceLedgerFault)
  /// libcrypto or the random source failed.
  case cryptography
}
