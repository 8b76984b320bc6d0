import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement

/// The enrolment of a device as its service is asked about it.
extension Prover {
  /// Asks the service that issued a device's token whether the token is still good, and takes over the terms that it
  /// answers with: the app's settings change, and the time for which the issuer allows to be offline begins anew.
  ///
  /// Terms come only for a valid token, and only if the app that asks has the name and the version for which the token
  /// was issued. Rules about the posture are not asked, because this gives access to nothing.
  ///
  /// - Parameters:
  ///   - device: the device, which is enrolled.
  ///   - exchange: carries the question's ``EnrolmentQuestion/body`` to the service, by `POST /v1/enrolment`, and
  ///     returns the body of the answer with status 200, at most 65,536 bytes. Anyone who reads the evidence knows the
  ///     measurements: carry it only over a confidential connection, and do not store it.
  /// - Returns: the state of the token. A token that is not valid any more is no error, and its enrolment stays.
  /// - Throws: the error of `exchange`; ``ProverError/state(_:)`` if the device is not enrolled, its enrolment is
  ///   damaged or the disk refuses, and with ``StateFolderFault/badTerms`` for terms of another issuer or token, or
  ///   older than the present ones; ``ProverError/measurement(_:)``; ``ProverError/malformedAnswer``;
  ///   ``ProverError/refused(_:)`` if the terms do not permit the version of the app or its host, also if they have the
  ///   enrolment removed for that (``ProofRefusal/wiped(_:_:)``).
  public func refresh(
    _ device: DeviceID, exchange: (_ question: EnrolmentQuestion) throws -> [UInt8]
  ) throws -> EnrolmentStanding {
    let answer = try ask(about: try enrolments(of: device)[0], exchange)
    var standing = answer.standing
    if standing.status == .valid, let terms = answer.terms {
      standing.changesSettings = try renewTerms(terms, for: device)
    }
    return standing
  }

  /// Tells the service that issued a device's token that the app leaves, so that it revokes the token, and removes the
  /// enrolment as ``unenroll(_:)`` does.
  ///
  /// The enrolment is removed also if the service cannot be told. A copy of its token then counts until it expires, or
  /// until an operator revokes it. A device without a network does not learn of a revocation at once.
  ///
  /// - Parameters:
  ///   - device: the device, which is enrolled. Its enrolment may be damaged; then nothing is told.
  ///   - exchange: as for ``refresh(_:exchange:)``, by `POST /v1/leave`.
  /// - Returns: the state of the token as the service answers, usually ``EnrolmentStanding/Status/left``; or the reason
  ///   why it could not be told: the error of `exchange`, or a ``ProverError`` as for ``refresh(_:exchange:)``.
  /// - Throws: the errors of ``unenroll(_:)``, and ``StateFolderFault/replaced(_:)`` in ``ProverError/state(_:)`` if
  ///   another process has enrolled for the device meanwhile: the newer enrolment stays. The service may have been told.
  public func leave(
    _ device: DeviceID, exchange: (_ question: EnrolmentQuestion) throws -> [UInt8]
  ) throws(ProverError) -> Result<EnrolmentStanding, any Error> {
    let entry: ProverFolder.Entry
    do throws(StateFolderFault) { entry = try folder.requiredEntry(of: device) } catch { throw .state(error) }
    return try leave(device, holding: (try? entry.load())?.token, exchange)
  }

  /// The same for an enrolment that was read before.
  ///
  /// - Parameter token: the token of the enrolment; nil for one that is damaged.
  package func leave(
    _ device: DeviceID, holding token: [UInt8]?, _ exchange: (_ question: EnrolmentQuestion) throws -> [UInt8]
  ) throws(ProverError) -> Result<EnrolmentStanding, any Error> {
    // The service must not revoke a token that stays.
    let present = Result { () throws(ProverError) in try enrolments(of: device)[0] }
    if let enrolment = try? present.get(), enrolment.token != token { throw .state(.replaced(device)) }
    let answer = Result { try ask(about: try present.get(), exchange).standing }
    try unenroll(device, holding: token)
    return answer
  }

  private func ask(
    about enrolment: Enrolment, _ exchange: (_ question: EnrolmentQuestion) throws -> [UInt8]
  ) throws -> EnrolmentAnswer {
    let question = try question(about: enrolment)
    return try EnrolmentAnswer(try exchange(question), about: question.tokenDigest)
  }

  /// Measures the app and its host, and returns the question about a device's token. Nothing is stored.
  private func question(about enrolment: Enrolment) throws(ProverError) -> EnrolmentQuestion {
    let digest: Digest
    do throws(CryptographyFailure) { digest = try Terms.digest(of: enrolment.token) } catch {
      throw .state(.cryptography)
    }
    var prover = self
    // The service has read this form of evidence before.
    prover.measurementPolicy = enrolment.measurementPolicy.intersection(.treeDigests)
    let baseline = try prover.takeBaselines(1, as: AppClaims(), of: try prover.measureForEnrolment())[0]
    return EnrolmentQuestion(
      device: enrolment.descriptor.deviceID, tokenDigest: digest, evidence: baseline.evidence)
  }

  /// Replaces the terms of a device's enrolment by newer ones of the same issuer. The time for which the issuer allows
  /// to be offline begins anew.
  ///
  /// - Parameters:
  ///   - text: the terms, as the service sent them for the token of the enrolment.
  ///   - device: the device.
  /// - Returns: Whether the settings of the app changed. Terms of the same time change nothing.
  /// - Throws: ``ProverError/state(_:)``: ``StateFolderFault/badTerms`` for terms of another issuer or token, or older
  ///   than the present ones; ``ProverError/refused(_:)`` if the terms do not permit the version of the app or its
  ///   host.
  package func renewTerms(_ text: [UInt8], for device: DeviceID) throws(ProverError) -> Bool {
    let enrolment = try enrolments(of: device)[0]
    let token = MeasurementToken(enrolment.token, report: enrolment.report, terms: text)
    if let known = enrolment.terms {
      let given: SignedTerms?
      do throws(StateFolderFault) { given = try token.verifiedTerms() } catch { throw .state(error) }
      guard let given, known.key == given.key, known.terms.issued <= given.terms.issued else { throw .state(.badTerms) }
      guard known.terms.issued < given.terms.issued else { return false }
    }
    guard let signed = try terms(of: token, for: enrolment.descriptor) else { throw .state(.badTerms) }
    let changed = enrolment.terms?.terms.conditions.settings != signed.terms.conditions.settings
    var renewed = enrolment
    renewed.terms = signed
    do throws(StateFolderFault) { try folder.store(renewed, replacing: true, host: host, isRenewed: true) } catch {
      throw .state(error)
    }
    return changed
  }
}
