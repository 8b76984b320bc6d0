import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOnline
import HoldfastOpenSSL

/// The public description of a device, from its owner.
public typealias DeviceDescriptor = HoldfastFormats.DeviceDescriptor
/// The reasons why a description of a device is refused.
public typealias KeyFault = HoldfastFormats.KeyFault

/// A measurement token from a backend, as the prover gets it.
public struct MeasurementToken: Sendable {
  /// The token, at most 3072 bytes. Only the device can read it.
  public let bytes: [UInt8]
  /// The claims that the issuer reported with it; nil if it reported none.
  package let report: IssuanceReport?
  /// The issuer's terms for the token, a compact JWS; nil if the backend sent none.
  public let terms: [UInt8]?
  /// The online service that issued the token; nil if it came in another way.
  package let service: ServiceAddress?

  /// Creates a token from the bytes that the backend sent. They are checked when the token is stored, which refuses bytes of
  /// another length or form as ``StateFolderFault/notAToken``, and terms that are not the issuer's for this token as
  /// ``StateFolderFault/badTerms``.
  public init(_ bytes: [UInt8], terms: [UInt8]? = nil) { self.init(bytes, report: nil, terms: terms) }

  /// Creates a token with the claims that the issuer reported.
  package init(
    _ bytes: [UInt8], report: IssuanceReport?, terms: [UInt8]? = nil, service: ServiceAddress? = nil
  ) {
    (self.bytes, self.report, self.terms, self.service) = (bytes, report, terms, service)
  }

  /// Verifies the terms: the signature, and that they belong to the token.
  ///
  /// The prover cannot know the issuer's key better than from the connection, or the folder, that the token itself came from. It
  /// keeps this key with the enrolment.
  ///
  /// - Throws: `badTerms`.
  package func verifiedTerms() throws(StateFolderFault) -> SignedTerms? {
    guard let terms else { return nil }
    let digest: Digest
    do throws(CryptographyFailure) { digest = try Terms.digest(of: bytes) } catch { throw .cryptography }
    guard let signed = try? SignedTerms(verifying: terms), signed.terms.tokenDigest == digest else { throw .badTerms }
    return signed
  }

  /// Checks the form of the bytes, as far as it can be seen from outside.
  ///
  /// - Throws: `notAToken`.
  package func check() throws(StateFolderFault) {
    let dotCount = bytes.count(where: { $0 == UInt8(ascii: ".") })
    guard let first = bytes.first, bytes.count <= Limit.token.everywhere,
      encoding == .jose ? dotCount == 4 : first >> 5 == 6
    else { throw .notAToken }
  }

  /// Returns whether the envelope names the key of a device as that of its recipient. Only the device knows whether it can
  /// decrypt the token.
  package func isAddressed(to device: DeviceDescriptor) -> Bool {
    TokenRecipient.keyID(of: bytes.span, encoding: encoding) == device.keyID
  }

  /// The format, which the first byte shows: compact JOSE begins with `{` in base64url, COSE with a CBOR tag.
  package var encoding: TokenEncoding { bytes.first == UInt8(ascii: "e") ? .jose : .cose }
}

/// The app's claims about itself in its evidence. The service's policy determines name and version, and claims must agree with it.
public struct AppClaims: Sendable {
  /// The name of the app; nil for no claim.
  public var subject: BoundedText<64>?
  /// The version of the app; nil for no claim.
  public var version: AppVersion?
  /// The app's properties, at most 16, which operators see; each has at least one byte. The order does not count.
  public var properties: [BoundedText<128>] = []
  /// The user property, printable ASCII, which operators see; nil for none.
  public var userProperty: BoundedText<128>?

  /// Creates the claims.
  public init(subject: BoundedText<64>? = nil, version: AppVersion? = nil) {
    (self.subject, self.version) = (subject, version)
  }
}

extension Prover {
  /// Enrols for a device in one step: measures, has the evidence exchanged for a token, and stores the token.
  ///
  /// An enrolment that is being replaced stays valid until the new one is complete.
  ///
  /// - Parameters:
  ///   - device: the description of the device, from its owner.
  ///   - app: the app's statements about itself.
  ///   - replacing: whether the device may be enrolled already.
  ///   - exchange: carries the evidence to the attestation service, and returns the token that the backend issued. Anyone who reads
  ///     the evidence knows the measurements: carry it only over a confidential connection, and do not store it.
  /// - Throws: ``ProverError``, or the error of `exchange`; then nothing is stored, or the whole enrolment if only the last step
  ///   did not reach the disk (``StateFolderFault/file(_:)``): the next call replaces it. Of several calls at once for one device
  ///   that is not replaced, one succeeds, and the others throw ``StateFolderFault/alreadyEnrolled(_:)``.
  public func enroll(
    for device: DeviceDescriptor, as app: AppClaims = AppClaims(), replacing: Bool = false,
    exchange: (_ evidence: [UInt8]) throws -> MeasurementToken
  ) throws {
    if !replacing { try checkIsNew(device.deviceID) }
    let baseline = try takeBaseline(as: app)
    try store(try exchange(baseline.evidence), of: baseline, for: device, replacing: replacing)
  }

  /// Takes a baseline whose token comes later, and stores what is needed until then. Existing enrolments do not change.
  ///
  /// - Parameters:
  ///   - device: the device of the baseline; nil for the one that ``accept(_:for:replacing:)`` names.
  ///   - app: the app's statements about itself.
  ///   - replacing: whether a baseline that waits for its token may be lost.
  /// - Returns: the baseline, with the evidence for the attestation service.
  /// - Throws: ``StateFolderFault/baselineWaits(path:)``, ``StateFolderFault/busy``, ``StateFolderFault/noExchange(path:)``,
  ///   ``StateFolderFault/file(_:)`` (also for a full or read-only disk, or a folder of another kind), each in ``ProverError/state(_:)``;
  ///   ``ProverError/measurement(_:)``.
  public func begin(
    for device: DeviceID? = nil, as app: AppClaims = AppClaims(), replacing: Bool = false
  ) throws(ProverError) -> Baseline {
    try inFolder { folder throws(StateFolderFault) in
      try folder.checkKind()
      if !replacing { try folder.checkNothingWaits(for: device) }
    }
    let baseline = try takeBaseline(as: app)
    try inFolder { folder throws(StateFolderFault) in
      try folder.begin(
        configuration: baseline.configuration.encoded(), fingerprints: baseline.fingerprints, for: device,
        replacing: replacing)
    }
    return baseline
  }

  /// Returns the baseline that waits for a device's token, with the same evidence, to send it to the backend once more: for
  /// example in another process, after somebody had to approve it.
  ///
  /// Evidence is not stored. App and host are measured again, and have to be as they were.
  ///
  /// - Parameters:
  ///   - device: the device of the baseline.
  ///   - app: what the app said of itself when the baseline was taken.
  /// - Returns: the baseline; nil if the app, its release or its host has changed since. Then begin again, and let the waiting
  ///   baseline be replaced.
  /// - Throws: ``StateFolderFault/noBaseline(_:)``, ``StateFolderFault/usedBaseline(_:)``, ``StateFolderFault/damaged(path:)``,
  ///   ``StateFolderFault/file(_:)`` (also for a folder of another kind), each in ``ProverError/state(_:)``;
  ///   ``ProverError/measurement(_:)``.
  public func resume(for device: DeviceID, as app: AppClaims = AppClaims()) throws(ProverError) -> Baseline? {
    try checkKind()
    return try resume(for: device, as: app, of: try measure())
  }

  /// The same with a recent measurement.
  package func resume(
    for device: DeviceID, as app: AppClaims, of measurement: LiveMeasurement
  ) throws(ProverError) -> Baseline? {
    let begun: (configuration: [UInt8], fingerprints: BaselineFingerprints)
    do throws(StateFolderFault) { begun = try folder.loadBegun(for: device) } catch { throw .state(error) }
    var measurer = Measurer(keys: keys)
    let configuration: MeasurementConfiguration
    let bytes = begun.configuration
    do throws(EncodingFault) { configuration = try MeasurementConfiguration(decoding: bytes.span) } catch {
      throw .measurement(.malformedConfiguration(error))
    }
    guard configuration.policy == measurementPolicy else { return nil }
    do throws(MeasurementError) {
      return try measurer.baseline(
        again: configuration, begun.fingerprints, of: measurement, subject: app.subject, version: app.version,
        properties: app.properties, userProperty: app.userProperty)
    } catch { throw .measurement(error) }
  }

  /// Completes the enrolment of the baseline that waits for a device's token.
  ///
  /// - Parameters:
  ///   - token: the token that the backend issued for the baseline's evidence. The token of the device's enrolment is accepted
  ///     again, and changes nothing.
  ///   - device: the description of the device, from its owner.
  ///   - replacing: whether the device may be enrolled already.
  /// - Throws: ``StateFolderFault/notAToken``, ``StateFolderFault/noBaseline(_:)``, ``StateFolderFault/usedBaseline(_:)``,
  ///   ``StateFolderFault/alreadyEnrolled(_:)``, ``StateFolderFault/file(_:)`` (also for a full or read-only disk, or a folder of
  ///   another kind), ``StateFolderFault/busy``, each in ``ProverError/state(_:)``. The baseline waits on, unless the error is
  ///   ``StateFolderFault/usedBaseline(_:)``. After an error, the same token can be given again: if only the last step did not
  ///   reach the disk, the enrolment is there, and its baseline counts as used for every other token.
  public func accept(
    _ token: MeasurementToken, for device: DeviceDescriptor, replacing: Bool = false
  ) throws(ProverError) {
    let terms = try terms(of: token, for: device)
    try inFolder { folder throws(StateFolderFault) in
      try folder.checkKind()
      try token.check()
      if let enrolment = folder.enrolment(of: device, with: token.bytes) { return try folder.complete(enrolment) }
      let begun = try folder.loadBegun(for: device.deviceID)
      try folder.store(
        Enrolment(
          descriptor: device, encoding: token.encoding, configuration: begun.configuration, token: token.bytes,
          fingerprints: begun.fingerprints, report: token.report, terms: terms, service: token.service),
        replacing: replacing, host: host)
      folder.removeBegun(configuration: begun.configuration, for: device.deviceID)
    }
  }

  /// Checks that a token for a device could be accepted, before one is issued.
  ///
  /// - Throws: the errors of ``accept(_:for:replacing:)``.
  package func checkIsAwaited(for device: DeviceID, replacing: Bool = false) throws(ProverError) {
    if !replacing { try checkIsNew(device) }
    try inFolder { folder throws(StateFolderFault) in _ = try folder.loadBegun(for: device) }
  }

  /// Checks that the state folder is a prover's, or none yet.
  package func checkKind() throws(ProverError) {
    try inFolder { folder throws(StateFolderFault) in try folder.checkKind() }
  }

  /// Checks that the state folder is a prover's, and that a device is not enrolled in it.
  package func checkIsNew(_ device: DeviceID) throws(ProverError) {
    try inFolder { folder throws(StateFolderFault) in
      try folder.checkKind()
      try folder.checkIsNew(device)
    }
  }

  /// Stores the token of a baseline that was not stored before.
  package func store(
    _ token: MeasurementToken, of baseline: Baseline, for device: DeviceDescriptor, replacing: Bool
  ) throws(ProverError) {
    let terms = try terms(of: token, for: device)
    try inFolder { folder throws(StateFolderFault) in
      try token.check()
      try folder.store(
        Enrolment(
          descriptor: device, encoding: token.encoding, configuration: baseline.configuration.encoded(),
          token: token.bytes, fingerprints: baseline.fingerprints, report: token.report, terms: terms,
          service: token.service),
        replacing: replacing, host: host)
    }
  }

  /// Verifies the terms of a token, and that the versions comply with their rules: otherwise the device is not enrolled, and an
  /// enrolment that a rule of its issuer wipes is removed.
  func terms(of token: MeasurementToken, for device: DeviceDescriptor) throws(ProverError) -> SignedTerms? {
    let terms: SignedTerms?
    do throws(StateFolderFault) { terms = try token.verifiedTerms() } catch { throw .state(error) }
    guard let terms else { return nil }
    let known = try? folder.entry(of: device.deviceID)?.load()
    if let key = known?.terms?.key, key != terms.key { warn(.anotherIssuerKey(device.deviceID)) }
    // Terms name their own key, so that anyone can sign some. Only the issuer that the enrolment knows may remove it.
    try termsCheck.checkVersions(
      terms.terms, device.deviceID, wiping: known?.terms?.key == terms.key ? known : nil)
    return terms
  }

  /// Measures this process, and creates the evidence for one device.
  package func takeBaseline(as app: AppClaims = AppClaims()) throws(ProverError) -> Baseline {
    try takeBaselines(1, as: app)[0]
  }

  /// Measures this process once, and creates the evidence for several devices. Each baseline has a separate salt.
  package func takeBaselines(_ count: Int, as app: AppClaims = AppClaims()) throws(ProverError) -> [Baseline] {
    try takeBaselines(count, as: app, of: try measure())
  }

  /// Measures this process and its host, if the rules about the posture allow it.
  package func measure() throws(ProverError) -> LiveMeasurement {
    try checkPosture()
    return try measureForEnrolment()
  }

  @inline(never)
  func takeBaselines(
    _ count: Int, as app: AppClaims, of measurement: LiveMeasurement
  ) throws(ProverError) -> [Baseline] {
    var random = SystemRandom()
    var measurer = Measurer(keys: keys)
    var baselines: [Baseline] = []
    do throws(MeasurementError) {
      for _ in 0..<count {
        baselines.append(
          try measurer.baseline(
            of: measurement, subject: app.subject, version: app.version, properties: app.properties,
            userProperty: app.userProperty, policy: measurementPolicy, clock: SystemClock(), random: &random))
      }
    } catch { throw .measurement(error) }
    return baselines
  }

  /// Takes a baseline whose token is requested from a service, and stores it with the request.
  ///
  /// - Parameter replacing: whether a baseline that waits for its token may be lost.
  package func begin(
    _ request: WaitingRequest, for device: DeviceID, as app: AppClaims, of measurement: LiveMeasurement, replacing: Bool
  ) throws(ProverError) -> Baseline {
    let baseline = try takeBaselines(1, as: app, of: measurement)[0]
    try inFolder { folder throws(StateFolderFault) in
      try folder.begin(
        configuration: baseline.configuration.encoded(), fingerprints: baseline.fingerprints, for: device,
        request: request, replacing: replacing)
    }
    return baseline
  }

  private func inFolder(_ body: (ProverFolder) throws(StateFolderFault) -> Void) throws(ProverError) {
    do throws(StateFolderFault) { try body(folder) } catch { throw .state(error) }
  }
}
