import HoldfastCore
import HoldfastKeys
import HoldfastOpenSSL

/// Appraises evidence against policy and writes attestation tokens; simulates the service of a vendor.
///
/// Source: RFC 9334 §4.1 (the *verifier* there). Used by one thread at a time.
public struct AttestationService<Seen: SeenConfigurations & ~Copyable>: ~Copyable {
  let account: AccountDerivations
  var signing: JWSKey
  let encryption: JWEKey
  let releases: ReleaseKeyRegistry
  public let policy: ServicePolicy
  var seen: Seen

  /// - Parameters:
  ///   - account: the account secret, at least 32 bytes.
  ///   - signing: what attestation tokens are signed with.
  ///   - encryption: the backend's key, of which only what encrypts is used.
  public init(
    account: consuming SecretBytes, signing: consuming JWSKey, encryption: consuming JWEKey,
    releases: consuming ReleaseKeyRegistry, policy: ServicePolicy, seen: consuming Seen
  ) {
    self.account = AccountDerivations(account: account)
    self.signing = signing
    self.encryption = encryption
    self.releases = releases
    self.policy = policy
    self.seen = seen
  }

  /// Appraises evidence; where the app is approved, its token is bound to `device`.
  ///
  /// The service computes both measurements itself. `evidence` is the result of `Evidence.encoded(authenticatedWith:using:)`.
  public mutating func appraise(
    _ evidence: Span<UInt8>, for device: DeviceDescriptor, clock: borrowing some Clock & ~Copyable,
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
    switch policy.appraise(authentic, now: now) {
    case .success(let approved): image = approved
    case .failure(let refusal): return .refused(refusal)
    }
    do throws(LedgerFault) {
      let configuration = authentic.configuration
      guard try seen.take(configuration.salt, created: configuration.created) else { return .refused(.repeated) }
    } catch { throw .ledger(error) }
    do throws(CryptographyFailure) {
      let claims = try claims(for: authentic, of: image, device: device, now: now, using: &cryptography)
      return .approved(
        token: try write(claims, random: &random, using: &cryptography), responseCode: claims.responseCode)
    } catch { throw .cryptography }
  }

  /// The claims of approved evidence.
  private func claims(
    for evidence: Evidence, of image: ApprovedImage, device: DeviceDescriptor, now: UInt64,
    using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> AttestationClaims {
    let configuration = evidence.configuration
    guard let proofKey = releases.proofKey(configuration.mpkID) else { throw CryptographyFailure() }
    let integrity: Secret<32>
    do throws(MeasurementFault) {
      integrity = try configuration.integrityMeasurement(
        app: evidence.app, device: evidence.device, using: &cryptography)
    } catch { throw CryptographyFailure() }
    let deviceMeasurement: Secret<32>
    do throws(MeasurementFault) {
      deviceMeasurement = try configuration.deviceMeasurement(device: evidence.device, using: &cryptography)
    } catch { throw CryptographyFailure() }
    let attestedID = try account.deviceID(of: evidence.device, using: &cryptography)
    return AttestationClaims(
      issuer: policy.attestationIssuer, audience: policy.audience, issuedAt: now,
      expires: now + policy.attestationSeconds, deviceID: attestedID,
      responseCode: try account.responseCode(
        device: attestedID, properties: evidence.properties, using: &cryptography),
      binding: try deviceBinding(device, using: &cryptography), integrity: integrity, device: deviceMeasurement,
      proofKey: proofKey, subject: image.subject, version: image.version)
  }

  /// Signs the claims, then encrypts them to the backend.
  private mutating func write(
    _ claims: borrowing AttestationClaims, random: inout some RandomSource & ~Copyable,
    using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> [UInt8] {
    var payload = ByteBuffer<2048>()
    do throws(EncodingFault) { try claims.appendJSON(to: &payload) } catch { throw CryptographyFailure() }
    do throws(JOSEFault) {
      let signed = try signing.sign(payload.bytes, type: AttestationClaims.type, using: &cryptography)
      return try encryption.seal(signed.bytes, contentType: "JWT", random: &random)
    } catch { throw CryptographyFailure() }
  }
}
