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
    let digest = authentic.image
    let image: ApprovedImage
    let defaultKey: KeyID
    do throws(CryptographyFailure) { defaultKey = try ReleaseKeys(of: ReleaseRoots.default().root(at: 0)).id } catch {
      throw .cryptography
    }
    do throws(AttestationRefusal) {
      image = try authentic.approval(
        policy.images.first { $0.digest == digest }, defaultKey: defaultKey, refusing: policy.refusedProperties,
        now: now)
    } catch { return .refused(error) }
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
    guard let proofKey = releases.proofKey(evidence.configuration.mpkID) else { throw CryptographyFailure() }
    let app = try AppraisedApp(evidence, of: image, proofKey: proofKey, using: &cryptography)
    let attestedID = try account.deviceID(of: evidence.device, using: &cryptography)
    return AttestationClaims(
      issuer: policy.attestationIssuer, audience: policy.audience, issuedAt: now,
      expires: now + policy.attestationSeconds, deviceID: attestedID,
      responseCode: try account.responseCode(
        device: attestedID, properties: evidence.properties, using: &cryptography),
      binding: try deviceBinding(device, using: &cryptography), integrity: app.integrity.copy(),
      device: app.device.copy(), proofKey: app.proofKey.copy(), subject: image.subject, version: image.version)
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
  ) throws(CryptographyFailure) -> HostID {
    var mac = try cryptography.hmacSHA256(key: account.bytes)
    mac.append(domain: "holdfast/1 attested device")
    mac.appendCBOR(array: components.count)
    for component in components {
      mac.appendCBOR(array: 2)
      mac.appendCBOR(text: component.id.bytes)
      mac.appendCBOR(bytes: component.digest.bytes)
    }
    let code: MAC = try mac.finish()
    return HostID(code.bytes.extracting(first: 16)) ?? HostID()
  }

  /// Derives the claim `arc`: ten base32 characters that represent the prover's host and the properties, for use in
  /// logs.
  ///
  /// Source: RFC 4648 §6 for the alphabet.
  package borrowing func responseCode(
    device: HostID, properties: [BoundedText<32>], using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> BoundedText<16> {
    var mac = try cryptography.hmacSHA256(key: account.bytes)
    mac.append(domain: "holdfast/1 attestation response code")
    mac.append(device.bytes)
    mac.appendCBOR(array: properties.count)
    for property in properties { mac.appendCBOR(text: property.bytes) }
    let code: MAC = try mac.finish()
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
