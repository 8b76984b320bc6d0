import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL

/// The enrolments with which a device may be answered: all of a state folder, or only the one that the user requires.
///
/// M1 identifies the device. Nothing is sent to a device that is not enrolled or that has another key than the enrolled
/// one.
package struct EnrolmentChoice {
  package let folder: ProverFolder
  /// The device that the user requires.
  package let expected: DeviceID?
  /// The only possible enrolment, if it is already known. Its faults are then reported before any connection is made.
  let only: Enrolment?

  /// Chooses the enrolments.
  ///
  /// - Throws: `nothingEnrolled`, `notEnrolled`, and the errors of ``EnrolmentFolder/load()`` if only one enrolment is
  ///   possible.
  package init(_ folder: ProverFolder, expecting device: DeviceID? = nil) throws(StateFolderFault) {
    self.folder = folder
    expected = device
    if let device {
      only = try folder.requiredEntry(of: device).load()
      return
    }
    let entries = try folder.entries()
    guard let first = entries.first else { throw try folder.nothingEnrolled() }
    only = entries.count == 1 ? try first.load() : nil
  }

  /// Returns the enrolment of the device that sent M1.
  ///
  /// - Throws: `anotherDevice`, `notEnrolled`, `anotherKey`, and the errors of ``EnrolmentFolder/load()``.
  package func enrolment(for challenge: Challenge) throws(StateFolderFault) -> Enrolment {
    if let expected, expected != challenge.deviceID {
      throw .anotherDevice(challenge.deviceID, expected: expected)
    }
    let enrolment = try loaded(challenge.deviceID)
    guard enrolment.descriptor.keyID == challenge.keyID else {
      throw .anotherKey(challenge.deviceID, enrolled: enrolment.descriptor.keyID, answered: challenge.keyID)
    }
    return enrolment
  }

  private func loaded(_ device: DeviceID) throws(StateFolderFault) -> Enrolment {
    if let only, only.descriptor.deviceID == device { return only }
    return try folder.requiredEntry(of: device).load()
  }

  /// The ways of measuring that all enrolments of the choice have in common. An enrolment that cannot be read has none.
  var measurementPolicy: MeasurementPolicy {
    if let only { return only.measurementPolicy }
    guard let entries = try? folder.entries() else { return [] }
    let policies = entries.map { (try? $0.load())?.measurementPolicy ?? [] }
    return policies.dropFirst().reduce(policies.first ?? []) { $0.intersection($1) }
  }

  /// Returns the damage that makes a device deny the enrolment's proof; nil if the enrolment is intact.
  func damage(of enrolment: Enrolment) -> StateFolderFault? {
    guard !enrolment.hasOwnConfiguration, let entry = try? folder.entry(of: enrolment.descriptor.deviceID) else {
      return nil
    }
    return entry.folder.damaged(EnrolmentFolder.configurationName)
  }

  /// Returns whether the device has already received the whole token of the enrolment.
  package func isRemembered(_ enrolment: Enrolment) -> Bool {
    guard let entry = try? folder.entry(of: enrolment.descriptor.deviceID) else { return false }
    return entry.folder.isRemembered(enrolment.token)
  }

  /// Returns the numbers of the requests to the enrolment's device.
  package func requestNumbers(
    of enrolment: Enrolment, warn: @escaping (ProverWarning) -> Void
  ) throws(StateFolderFault) -> RequestNumbers {
    RequestNumbers(folder: try folder.requiredEntry(of: enrolment.descriptor.deviceID).folder.path, warn: warn)
  }

  /// Records that the device, which proved itself, accepted the enrolment's token.
  package func setRemembered(_ enrolment: Enrolment) throws(StateFolderFault) {
    // An enrolment that another process has removed meanwhile needs no record.
    guard let entry = try folder.entry(of: enrolment.descriptor.deviceID) else { return }
    try entry.folder.setRemembered(enrolment.token)
  }
}

extension Enrolment {
  package typealias Session = ProverSession<OpenSSLCryptography, SystemRandom>

  /// Creates a session in which every round proves the recent `measurement`.
  ///
  /// - Throws: The errors of ``Measurer/provableMeasurements(of:for:)``.
  package func session(
    proving measurement: LiveMeasurement, with keys: ProofKeys, for request: borrowing Request, isRemembered: Bool
  ) throws(MeasurementError) -> Session {
    var measurer = Measurer(keys: keys)
    let measurements = try measurer.provableMeasurements(of: measurement, for: try decodedConfiguration())
    do throws(EncodingFault) {
      return try Session(
        identity: measurements.identity(for: descriptor), request: request.copy(), token: token.span,
        encoding: encoding, isRemembered: isRemembered,
        cryptography: OpenSSLCryptography(), random: SystemRandom())
    } catch { preconditionFailure("a token that was loaded is not too long") }
  }
}

extension ProvableMeasurements {
  package consuming func identity(for descriptor: DeviceDescriptor) -> Enrolment.Session.Identity {
    Enrolment.Session.Identity(
      deviceID: descriptor.deviceID, keyID: descriptor.keyID, proofKey: key.copy(), integrity: integrity.copy(),
      device: device.copy())
  }
}
