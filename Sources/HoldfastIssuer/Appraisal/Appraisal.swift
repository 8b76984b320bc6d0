import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The keys that an issuer shares with one release of an app.
public typealias ReleaseKeys = HoldfastFormats.ReleaseKeys
/// The reasons why the keys of a release cannot be read.
public typealias ReleaseKeysError = HoldfastFormats.ReleaseKeysError

/// Evidence from an app whose form was checked, but not yet who made it.
///
/// An issuer without a store appraises it with ``appraised(as:refusing:permitting:now:)``. Then it is the caller who must not
/// accept a baseline twice: see ``AppraisedApp/baseline``.
public struct SubmittedEvidence: Sendable {
  /// The largest evidence, in bytes.
  public static let maximumByteCount = 65_536

  private let evidence: UnverifiedEvidence

  /// Decodes evidence.
  ///
  /// - Parameter bytes: The evidence that the prover made, at most ``maximumByteCount`` bytes.
  /// - Throws: `malformed`.
  public init(_ bytes: [UInt8]) throws(AppraisalError) {
    guard bytes.count <= Self.maximumByteCount else { throw .malformed }
    do throws(EncodingFault) { evidence = try UnverifiedEvidence(decoding: bytes.span) } catch { throw .malformed }
  }

  /// The digest of the app's executable as the evidence states it, by which an approval is found; nil if it has no such component. It
  /// may be a lie until the evidence is appraised.
  public var image: ImageDigest? { evidence.image }

  /// The id of the release whose keys the evidence must have, 8 bytes.
  package var releaseID: KeyID { evidence.releaseID }

  /// The salt of the baseline. It may be a lie, as ``image`` may.
  package var salt: ConfigurationSalt { evidence.salt }

  /// Returns the app's statement if its MAC is right; nil if it is not. Timing: the MAC is compared in constant time.
  package func authentic(with keys: borrowing ReleaseKeys) -> Evidence? {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      return try evidence.verified(with: keys.evidence, using: &cryptography).evidence
    } catch { return nil }
  }

  /// Appraises the evidence. Only an app with the keys of the approved image's release can have made it.
  ///
  /// Timing: the MAC is compared in constant time.
  ///
  /// - Parameters:
  ///   - approval: The approval of ``image``.
  ///   - properties: The properties with which no app is approved.
  ///   - measuring: The ways of measuring that the baseline may permit.
  ///   - now: The present time, in Unix seconds. The baseline must not differ from it by more than five minutes.
  /// - Throws: `refused` with the first reason that applies; `cryptography` if the cryptographic library fails.
  public func appraised(
    as approval: borrowing ImageApproval, refusing properties: [BoundedText<32>] = defaultRefusedProperties,
    permitting measuring: MeasurementPolicy = defaultMeasurementPolicy, now: UInt64
  ) throws(AppraisalError) -> AppraisedApp {
    guard let image else { throw .refused(.incomplete) }
    guard evidence.releaseID == approval.keys.id else { throw .refused(.anotherRelease) }
    guard let authentic = authentic(with: approval.keys) else { throw .refused(.notAuthentic) }
    let approved: ApprovedImage
    do throws(AttestationRefusal) {
      approved = try authentic.approval(
        ApprovedImage(image, approval.subject, approval.version, approval.keys.id),
        defaultKey: approval.keys.id, refusing: properties, permitting: measuring, now: now)
    } catch { throw .refused(error) }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      return try AppraisedApp(authentic, of: approved, proofKey: approval.keys.proof, using: &cryptography)
    } catch { throw .cryptography }
  }
}

/// The approval of an executable, with the name and version that its tokens carry, and the keys of its release.
///
/// The owner sets the name and version, never the app: an old release could claim to be a newer one.
public struct ImageApproval: ~Copyable, Sendable {
  /// The claim `sub` of its tokens, text of 1 to 64 bytes.
  public let subject: BoundedText<64>
  /// The claim `ver` of its tokens, three numbers of at most 2^53 - 1.
  public let version: AppVersion
  /// The keys that the executable was built with. Evidence with the keys of another release is refused.
  public let keys: ReleaseKeys

  /// Creates an approval.
  public init(subject: BoundedText<64>, version: AppVersion, keys: consuming ReleaseKeys) {
    (self.subject, self.version) = (subject, version)
    self.keys = keys
  }
}

/// The properties with which no app is approved by default: `debugger`, `injection` and `agent`.
public let defaultRefusedProperties = ["debugger", "injection", "agent"].compactMap { BoundedText<32>($0) }

/// The ways of measuring that an owner can refuse, all of which baselines may permit by default.
public let defaultMeasurementPolicy: MeasurementPolicy = .knownCode

/// An app that was appraised and approved, with the measurements that a token for it carries.
///
/// The measurements are secrets, in storage that is wiped.
public struct AppraisedApp: ~Copyable, Sendable {
  /// The claim `sub` of its tokens, from its approval.
  public let subject: BoundedText<64>
  /// The claim `ver` of its tokens, from its approval.
  public let version: AppVersion
  /// A digest of 32 bytes that identifies the baseline, and from which the measurements cannot be derived. Only one token may
  /// be issued for a baseline.
  public let baseline: Digest
  /// The integrity measurement, 32 bytes.
  package let integrity: Secret<32>
  /// The device measurement, of the prover's host, 32 bytes.
  package let device: Secret<32>
  /// The measurement proof key, 16 bytes.
  package let proofKey: MeasurementProofKey

  /// Creates the app from what an attestation token says of it.
  init(
    subject: BoundedText<64>, version: AppVersion, integrity: consuming Secret<32>, device: consuming Secret<32>,
    proofKey: consuming MeasurementProofKey, using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) {
    baseline = try baselineDigest(integrity, using: &cryptography)
    (self.subject, self.version) = (subject, version)
    self.integrity = integrity
    self.device = device
    self.proofKey = proofKey
  }

  /// Computes both measurements from approved evidence.
  init(
    _ evidence: Evidence, of image: ApprovedImage, proofKey: borrowing MeasurementProofKey,
    using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) {
    let configuration = evidence.configuration
    let integrity: Secret<32>
    do throws(MeasurementFault) {
      integrity = try configuration.integrityMeasurement(
        app: evidence.app, device: evidence.device, using: &cryptography)
    } catch { throw CryptographyFailure() }
    let device: Secret<32>
    do throws(MeasurementFault) {
      device = try configuration.deviceMeasurement(device: evidence.device, using: &cryptography)
    } catch { throw CryptographyFailure() }
    try self.init(
      subject: image.subject, version: image.version, integrity: integrity, device: device, proofKey: proofKey.copy(),
      using: &cryptography)
  }
}

/// Computes the digest under which a baseline is recorded. The measurement cannot be derived from it.
private func baselineDigest(
  _ integrity: borrowing Secret<32>, using cryptography: inout OpenSSLCryptography
) throws(CryptographyFailure) -> Digest {
  var hash = cryptography.sha256()
  hash.append(domain: "holdfast/1 issued baseline")
  integrity.withBytes { hash.append($0) }
  return try hash.finish()
}

/// The reasons why evidence was not appraised as an approved app's.
public enum AppraisalError: Error, Equatable {
  /// The bytes are not evidence.
  case malformed
  /// The app is not approved.
  case refused(AttestationRefusal)
  /// The cryptographic library failed.
  case cryptography
}

/// The reasons why an app is not approved. The first that applies is reported.
public enum AttestationRefusal: Error, Equatable {
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
  /// The evidence has the keys of a release, and the image is approved as one of another release.
  case anotherRelease
  /// The app claims a name other than the one that the policy gives its image.
  case subject(claimed: BoundedText<64>, approved: BoundedText<64>)
  /// The app claims a version other than the one that the policy gives its image.
  case version(claimed: AppVersion, approved: AppVersion)
  /// The evidence has a property that the policy refuses.
  case property(BoundedText<32>)
  /// The baseline permits known code, and the policy does not.
  case knownCode
  /// The configuration was appraised before.
  case repeated
}

extension AttestationRefusal {
  /// Whether the development key waives the reason: it depends on the image that runs and on what it noticed, not on who made the
  /// evidence and when.
  package var isWaivedInDevelopment: Bool {
    switch self {
    case .unknownImage, .anotherRelease, .subject, .version, .property: true
    case .unknownProofKey, .notAuthentic, .notFresh, .incomplete, .knownCode, .repeated: false
    }
  }
}

extension Evidence {
  /// The components that every baseline must have. Source: docs/measurement.md.
  private static let requiredAppIDs: [ComponentID] = [
    "app.debug", "app.image", "app.injected", "app.text", "os.release",
  ].compactMap { BoundedText($0) }
  private static let requiredDeviceIDs: [ComponentID] = [
    "device.cpu", "device.machine", "device.secret",
  ].compactMap { BoundedText($0) }

  /// The largest difference between a baseline's time and the present, in seconds.
  package static let freshnessSeconds: UInt64 = 5 * 60

  /// Returns the approval of the image that made this authentic evidence, or throws the first reason for refusal.
  func approval(
    _ approved: ApprovedImage?, defaultKey: KeyID, refusing refused: [BoundedText<32>],
    permitting measuring: MeasurementPolicy, now: UInt64
  ) throws(AttestationRefusal) -> ApprovedImage {
    let reasons = refusals(approved, defaultKey: defaultKey, refusing: refused, permitting: measuring, now: now)
    if let first = reasons.first { throw first }
    guard let approved else { throw .unknownImage }
    return approved
  }

  /// Returns all reasons why the image that made this authentic evidence is not approved, in the order in which they are
  /// reported; none if it is approved.
  ///
  /// The approval determines the name and the version. A claim in the evidence must agree with them.
  ///
  /// - Parameters:
  ///   - approved: The approval of ``image``; nil if there is none.
  ///   - defaultKey: The id of the measurement proof key of an image whose approval names none.
  ///   - refused: The properties that the owner refuses.
  ///   - measuring: The ways of measuring that the owner permits.
  ///   - now: The present time, in Unix seconds; nil for a baseline whose time was checked before.
  package func refusals(
    _ approved: ApprovedImage?, defaultKey: KeyID, refusing refused: [BoundedText<32>],
    permitting measuring: MeasurementPolicy, now: UInt64?
  ) -> [AttestationRefusal] {
    var reasons: [AttestationRefusal] = []
    let created = configuration.created
    if let now, max(now, created) - min(now, created) > Self.freshnessSeconds { reasons.append(.notFresh) }
    if !Self.requiredAppIDs.allSatisfy(configuration.appIDs.contains)
      || !Self.requiredDeviceIDs.allSatisfy(configuration.deviceIDs.contains)
    {
      reasons.append(.incomplete)
    }
    if let approved, approved.isApproval(of: image) {
      if configuration.mpkID != approved.proofKey ?? defaultKey { reasons.append(.anotherRelease) }
      if let claimed = subject, claimed != approved.subject {
        reasons.append(.subject(claimed: claimed, approved: approved.subject))
      }
      if let claimed = version, claimed != approved.version {
        reasons.append(.version(claimed: claimed, approved: approved.version))
      }
    } else {
      reasons.append(.unknownImage)
    }
    reasons += properties.filter(refused.contains).map { .property($0) }
    if configuration.policy.contains(.knownCode) && !measuring.contains(.knownCode) { reasons.append(.knownCode) }
    return reasons
  }
}
