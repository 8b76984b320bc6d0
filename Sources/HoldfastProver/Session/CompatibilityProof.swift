import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastTransport

/// The proofs of one measurement for a nonce, and the token with which a verifier checks them.
public struct MeasurementProofs: Sendable {
  /// The device whose key opens the token.
  public let device: DeviceID
  /// The nonce.
  public let nonce: Nonce
  /// The integrity proof (IMP): `HMAC-SHA-256(MPK, nonce ‖ IM)`, 32 bytes.
  public let integrityProof: MAC
  /// The device proof (DMP): `HMAC-SHA-256(MPK, nonce ‖ DM)`, 32 bytes.
  public let deviceProof: MAC
  /// The format of ``token``, COSE or JOSE.
  public let encoding: TokenEncoding
  /// The measurement token, at most 3072 bytes.
  public let token: [UInt8]
}

extension Prover {
  /// Measures the app and its host, and proves both for a nonce that a verifier of your own chose.
  ///
  /// Source: Approov, "Offline Security Mode", `getIntegrityMeasurementProof` and `getDeviceMeasurementProof`.
  ///
  /// - Parameters:
  ///   - nonce: 16 bytes, never used before. The top bit of the first byte is zero, because nonces with that bit are those of
  ///     sessions.
  ///   - device: the device whose token is given; nil if only one is enrolled.
  /// - Throws: ``ProverError/reservedNonce`` if the top bit is set; ``ProverError/state(_:)``, also if several devices are enrolled
  ///   and none is named, or if an enrolment is damaged; ``ProverError/refused(_:)``; ``ProverError/measurement(_:)``.
  public func proofs(nonce: Nonce, device: DeviceID? = nil) throws(ProverError) -> MeasurementProofs {
    guard nonce.isForCompatibility else { throw .reservedNonce }
    try checkPosture()
    let found = try enrolments(of: device)
    guard found.count == 1 else { throw .state(.severalEnrolled(found.map(\.descriptor.deviceID))) }
    try termsCheck.check(found[0])
    keys.warnIfDefault()
    do throws(MeasurementError) {
      var measurer = Measurer(keys: keys)
      return try found[0].proofs(of: try measurer.measure(under: found[0].measurementPolicy), nonce: nonce, keys: keys)
    } catch { throw .measurement(error) }
  }

  /// Proves to a device in a compatibility round, and has it carry out a command.
  ///
  /// A device takes only the commands that its policy allows in such rounds. Nothing binds the command to the proofs, and nothing
  /// seals the answer: **anyone on the connection can change both**. The function is for teams that try a device or a verifier
  /// which knows no sessions.
  ///
  /// - Parameters:
  ///   - command: 1 to 32 bytes. The command has no parameters, no codes and no number.
  ///   - endpoint: the address at which the device serves.
  ///   - options: the device that must answer, the time, and how the proof is watched and ended.
  /// - Returns: the device's verdict, which is never authenticated.
  /// - Throws: the errors of a proof in a session.
  public func proveInCompatibilityRound(
    _ command: BoundedText<32>, at endpoint: Endpoint, options: ProofOptions = ProofOptions()
  ) throws(ProverError) -> ProofOutcome {
    let enrolments = try choice(options.device)
    return try proof(enrolments, Request(command: command), options).runInCompatibilityRound(at: endpoint)
  }
}

extension Proof {
  /// Measures, connects, and sends the command with the whole token and the proofs for a fresh nonce.
  func runInCompatibilityRound(at endpoint: Endpoint) throws(ProverError) -> ProofOutcome {
    var meeting = try meet { () throws(ProverError) in try connect(to: endpoint) }
    guard case .challenge(let challenge) = meeting.greeting else { return meeting.outcome() }
    let enrolment = try enrolment(for: challenge)
    options.progress(.proving(challenge.deviceID))
    let message = try compatibilityMessage(of: enrolment, proving: meeting.measurement)
    try meeting.conversation.send(message.span, by: meeting.deadline)
    meeting.timing.round += meeting.stopwatch.lap()
    options.progress(.waiting(challenge.deviceID))
    try meeting.conversation.receive(by: meeting.deadline)
    meeting.timing.device += meeting.stopwatch.lap()
    let verdict: ProverOutcome
    do throws(ProverFault) {
      verdict = try ProverOutcome(compatibilityVerdict: meeting.conversation.received.span)
    } catch { throw .session(error) }
    var outcome = ProofOutcome(
      enrolment: enrolment, verdict: verdict, result: [], timing: meeting.timing, attemptCount: 1)
    outcome.damage = enrolments.damage(of: enrolment)
    return outcome
  }

  private func compatibilityMessage(
    of enrolment: Enrolment, proving measurement: LiveMeasurement
  ) throws(ProverError) -> [UInt8] {
    var random = SystemRandom()
    var nonce: Nonce
    do throws(RandomFailure) { nonce = try random.fixedBytes() } catch { throw .session(.random) }
    nonce[0] &= 0x7f
    let proofs: MeasurementProofs
    do throws(MeasurementError) {
      proofs = try enrolment.proofs(of: measurement, nonce: nonce, keys: keys)
    } catch { throw .measurement(error) }
    let token = proofs.token
    var message: [UInt8] = []
    ProofMessage.encodeCompatibility(
      nonce: nonce, encoding: proofs.encoding, token: token.span, integrityProof: proofs.integrityProof,
      deviceProof: proofs.deviceProof, command: request.command, into: &message)
    return message
  }
}

extension Enrolment {
  /// Returns the proofs of a recent measurement of every component.
  fileprivate func proofs(
    of measurement: LiveMeasurement, nonce: Nonce, keys: ProofKeys
  ) throws(MeasurementError) -> MeasurementProofs {
    var measurer = Measurer(keys: keys)
    let measurements = try measurer.provableMeasurements(of: measurement, for: try decodedConfiguration())
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      return MeasurementProofs(
        device: descriptor.deviceID, nonce: nonce,
        integrityProof: try measurementProof(
          key: measurements.key, nonce: nonce, measurement: measurements.integrity, using: &cryptography),
        deviceProof: try measurementProof(
          key: measurements.key, nonce: nonce, measurement: measurements.device, using: &cryptography),
        encoding: encoding, token: token)
    } catch { throw .cryptography }
  }
}
