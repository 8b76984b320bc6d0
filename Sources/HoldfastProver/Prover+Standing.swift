import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement

/// The enrolment of a device as its service is asked about it.
extension Prover {
  /// Returns SHA-256 of the token of a device, by which the service finds it: no prover knows the id of a token.
  ///
  /// - Throws: ``ProverError/state(_:)`` if the device is not enrolled, or its enrolment is damaged.
  package func tokenDigest(for device: DeviceID) throws(ProverError) -> Digest {
    let token = try enrolments(of: device)[0].token
    do throws(CryptographyFailure) { return try Terms.digest(of: token) } catch { throw .state(.cryptography) }
  }

  /// Replaces the terms of a device's enrolment by newer ones of the same issuer. The time for which the issuer allows to be offline
  /// begins anew.
  ///
  /// - Parameters:
  ///   - text: the terms, as the service sent them for the token of the enrolment.
  ///   - device: the device.
  /// - Returns: Whether the settings of the app changed. Terms of the same time change nothing.
  /// - Throws: ``ProverError/state(_:)``: ``StateFolderFault/badTerms`` for terms of another issuer or token, or older than the
  ///   present ones; ``ProverError/refused(_:)`` if the terms do not permit the version of the app or its host.
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

  /// Returns fresh evidence with which the app proves to a service who it is, in the form of a device's enrolment, which that service
  /// has read before. Nothing is stored.
  ///
  /// Rules about the posture are not asked: this gives no access to anything.
  ///
  /// - Throws: ``ProverError/state(_:)`` if the device is not enrolled; ``ProverError/measurement(_:)``.
  package func identifyingEvidence(for device: DeviceID) throws(ProverError) -> [UInt8] {
    var prover = self
    prover.measurementPolicy = try choice(device).measurementPolicy.intersection(.treeDigests)
    return try prover.takeBaselines(1, as: AppClaims(), of: try prover.measureForEnrolment())[0].evidence
  }
}
