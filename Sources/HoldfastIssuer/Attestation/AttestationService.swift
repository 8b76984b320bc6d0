import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// An attestation service, which appraises evidence against a policy and issues attestation tokens. It simulates a
/// vendor's service.
///
/// Source: RFC 9334 §4.1, where its role is the *verifier*. Only one thread at a time may use it.
package struct AttestationService<Seen: SeenConfigurations & ~Copyable>: ~Copyable {
  let account: AccountDerivations
  var signing: JWSKey
  let encryption: JWEKey
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
    self.account = AccountDerivations(account: account)
    self.signing = signing
    self.encryption = encryption
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
  /// - Throws: The condition that prevents an appraisal; a refusal is not an error.
  package mutating func appraise(
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
    do throws(ServiceLedgerFault) {
      let configuration = authentic.configuration
      guard try seen.take(configuration.salt, created: configuration.created) else { return .refused(.repeated) }
    } catch { throw .ledger(error) }
    do throws(CryptographyFailure) {
      let claims = try claims(for: authentic, of: image, device: device, now: now, using: &cryptography)
      return .approved(
        token: try write(claims, random: &random, using: &cryptography), responseCode: claims.responseCode)
    } catch { throw .cryptography }
  }

  /// Makes the claims for approved evidence.
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

/// The result of an appraisal.
package enum Appraisal: Sendable, Equatable {
  /// The app is approved. The values are the attestation token and its response code for the log.
  case approved(token: [UInt8], responseCode: BoundedText<16>)
  /// The app is not approved.
  case refused(AttestationRefusal)
}

/// The reasons why an app is not approved. The first that applies is reported.
package enum AttestationRefusal: Error, Equatable {
  /// The keys of the app's release are not registered.
  case unknownProofKey
  /// The evidence is not authenticated with the evidence key of the release that it names.
  case notAuthentic
  /// The time of the baseline differs from the service's clock by more than five minutes.
  case notFresh
  /// Components that every baseline must have are missing.
  case incomplete
  /// The app's image is not approved.
  case unknownImage
  /// The app claims a name other than the one that the policy gives its image.
  case subject(claimed: BoundedText<64>, approved: BoundedText<64>)
  /// The app claims a version other than the one that the policy gives its image.
  case version(claimed: AppVersion, approved: AppVersion)
  /// The evidence has a property that the policy refuses.
  case property(BoundedText<32>)
  /// The configuration was appraised before.
  case repeated
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

extension ServicePolicy {
  /// The components that every baseline must have. Source: docs/measurement.md.
  private static let requiredAppIDs: [ComponentID] = [
    "app.debug", "app.image", "app.injected", "app.text", "os.release",
  ].compactMap { BoundedText($0) }
  private static let requiredDeviceIDs: [ComponentID] = [
    "device.cpu", "device.machine", "device.secret",
  ].compactMap { BoundedText($0) }

  /// The largest difference between a baseline's time and the present, in seconds.
  private static let freshnessSeconds: UInt64 = 5 * 60
  private static let imageID = ComponentID("app.image" as StaticString)

  /// Appraises authentic evidence. Returns the approved image that made it, or the reason for refusal.
  ///
  /// The policy's entry for the image determines the name and the version. A claim in the evidence must agree with
  /// them.
  func appraise(_ evidence: Evidence, now: UInt64) -> Result<ApprovedImage, AttestationRefusal> {
    let created = evidence.configuration.created
    guard max(now, created) - min(now, created) <= Self.freshnessSeconds else { return .failure(.notFresh) }
    guard Self.requiredAppIDs.allSatisfy(evidence.configuration.appIDs.contains),
      Self.requiredDeviceIDs.allSatisfy(evidence.configuration.deviceIDs.contains)
    else { return .failure(.incomplete) }
    guard let digest = evidence.app.first(where: { $0.id == Self.imageID })?.digest,
      let image = images.first(where: { $0.digest == digest })
    else { return .failure(.unknownImage) }
    if let claimed = evidence.subject, claimed != image.subject {
      return .failure(.subject(claimed: claimed, approved: image.subject))
    }
    if let claimed = evidence.version, claimed != image.version {
      return .failure(.version(claimed: claimed, approved: image.version))
    }
    if let property = evidence.properties.first(where: refusedProperties.contains) {
      return .failure(.property(property))
    }
    return .success(image)
  }
}

/// Computes the claim `pay`, which binds an attestation token to the device that the app asks for: SHA-256 of device id
/// ‖ public point.
func deviceBinding(
  _ device: DeviceDescriptor, using cryptography: inout OpenSSLCryptography
) throws(CryptographyFailure) -> Digest {
  var hash = cryptography.sha256()
  hash.append(device.deviceID.bytes)
  hash.append(device.publicKey.point.bytes)
  return try hash.finish()
}

/// The values that the service derives from its account secret, so that they reveal nothing to other parties.
package struct AccountDerivations: ~Copyable {
  package let account: SecretBytes

  package init(account: consuming SecretBytes) {
    self.account = account
  }

  /// Derives the claim `did`: 16 bytes that are always the same for the same prover's host.
  package borrowing func deviceID(
    of components: [Component], using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> FixedBytes<16> {
    var mac = try cryptography.hmacSHA256(key: account.bytes)
    mac.append(domain: "holdfast/1 attested device")
    mac.appendCBOR(array: components.count)
    for component in components {
      mac.appendCBOR(array: 2)
      mac.appendCBOR(text: component.id.bytes)
      mac.appendCBOR(bytes: component.digest.bytes)
    }
    let code = try mac.finish()
    return FixedBytes<16>(code.bytes.extracting(first: 16)) ?? FixedBytes()
  }

  /// Derives the claim `arc`: ten base32 characters that represent the prover's host and the properties, for use in
  /// logs.
  ///
  /// Source: RFC 4648 §6 for the alphabet.
  package borrowing func responseCode(
    device: FixedBytes<16>, properties: [BoundedText<32>], using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> BoundedText<16> {
    var mac = try cryptography.hmacSHA256(key: account.bytes)
    mac.append(domain: "holdfast/1 attestation response code")
    mac.append(device.bytes)
    mac.appendCBOR(array: properties.count)
    for property in properties { mac.appendCBOR(text: property.bytes) }
    let code = try mac.finish()
    var bits: UInt64 = 0
    for index in 0..<8 { bits = bits << 8 | UInt64(code[index]) }
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)
    var text: [UInt8] = []
    for _ in 0..<10 {
      text.append(alphabet[Int(bits >> 59)])
      bits <<= 5
    }
    return BoundedText<16>(text.span) ?? BoundedText()
  }
}
