import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL

/// The enrolments with which a device may be answered: all of a state folder, or only the one that the user requires.
///
/// M1 identifies the device. Nothing is sent to a device that is not enrolled or that has another key than the enrolled
/// one.
struct EnrolmentChoice {
  let folder: ProverFolder
  /// The device that the user requires.
  let expected: DeviceID?
  /// The only possible enrolment, if it is already known. Its faults are then reported before any connection is made.
  private let only: Enrolment?

  /// Chooses the enrolments.
  ///
  /// - Throws: `nothingEnrolled`, `notEnrolled`, and the errors of ``EnrolmentFolder/load()`` if only one enrolment is
  ///   possible.
  init(_ folder: ProverFolder, expecting device: DeviceID? = nil) throws(StateFolderFault) {
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
  func enrolment(for challenge: Challenge) throws(StateFolderFault) -> Enrolment {
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

  /// Returns whether the device has already received the whole token of the enrolment.
  func isRemembered(_ enrolment: Enrolment) -> Bool {
    guard let entry = try? folder.entry(of: enrolment.descriptor.deviceID) else { return false }
    return entry.folder.isRemembered(enrolment.token)
  }

  /// Returns the numbers of the requests to the enrolment's device.
  func requestNumbers(of enrolment: Enrolment) throws(Failure) -> RequestNumbers {
    do throws(StateFolderFault) {
      return RequestNumbers(folder: try folder.requiredEntry(of: enrolment.descriptor.deviceID).folder.path)
    } catch { throw Failure(error, folder: folder.path) }
  }

  /// Records that the device, which proved itself, accepted the enrolment's token.
  func setRemembered(_ enrolment: Enrolment) throws(StateFolderFault) {
    // An enrolment that another process has removed meanwhile needs no record.
    guard let entry = try folder.entry(of: enrolment.descriptor.deviceID) else { return }
    try entry.folder.setRemembered(enrolment.token)
  }
}

extension Enrolment {
  typealias Session = ProverSession<OpenSSLCryptography, SystemRandom>

  /// Creates a session in which every round proves the recent `measurement`.
  ///
  /// - Throws: The errors of ``Measurer/provableMeasurements(of:for:)``.
  func session(
    proving measurement: LiveMeasurement, for request: borrowing Request, isRemembered: Bool
  ) throws(MeasurementError) -> Session {
    var measurer = Measurer()
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
  consuming func identity(for descriptor: DeviceDescriptor) -> Enrolment.Session.Identity {
    Enrolment.Session.Identity(
      deviceID: descriptor.deviceID, keyID: descriptor.keyID, proofKey: key.copy(), integrity: integrity.copy(),
      device: device.copy())
  }
}

/// The options for a prover's state folder and for the device that the user requires.
struct StateOptions: ParsableArguments {
  @Option(help: "The prover's state folder, which enroll filled.", completion: .directory)
  var state: String

  @Option(
    help:
      "The device that must answer: its id (32 hexadecimal digits) or its descriptor. By default, any enrolled device.",
    completion: .file())
  var device: String?

  var folder: ProverFolder { ProverFolder(path: state) }

  /// Returns the enrolments that may be proved.
  func choice() throws(Failure) -> EnrolmentChoice {
    let device = try expectedDevice()
    return try reading(folder) { () throws(StateFolderFault) in try EnrolmentChoice(folder, expecting: device) }
  }

  func expectedDevice() throws(Failure) -> DeviceID? {
    guard let device else { return nil }
    return try DeviceID(deviceArgument: device)
  }
}

extension FixedBytes where count == 16 {
  /// Parses a device id: 32 hexadecimal digits, or a file with a descriptor.
  package init(deviceArgument text: String) throws(Failure) {
    if let id: DeviceID = fixedBytes(hexadecimal: text.lowercased()) {
      self = id
      return
    }
    guard !text.isEmpty else {
      throw Failure(.usage, "--device must be a device's id of 32 hexadecimal digits, or the file with its descriptor")
    }
    self = try DeviceDescriptor(file: text).deviceID
  }
}

extension EnrolmentChoice {
  /// Returns the reason why a device must deny the enrolment's proof; nil if the enrolment is intact.
  func damage(of enrolment: Enrolment) -> Failure? {
    guard !enrolment.hasOwnConfiguration, let entry = try? folder.entry(of: enrolment.descriptor.deviceID) else {
      return nil
    }
    return Failure(entry.folder.damaged(EnrolmentFolder.configurationName), folder: folder.path)
  }
}

/// Writes to a state folder and converts its faults to failures. The parent folder may be the cause.
func writing(
  _ folder: ProverFolder, _ body: () throws(StateFolderFault) -> Void
) throws(Failure) {
  do throws(StateFolderFault) { try body() } catch {
    if case .file(let fault) = error, fault.path == folder.path { throw Failure(making: fault) }
    if case .file(let fault) = error { throw Failure(fault) }
    throw Failure(error, folder: folder.path)
  }
}

/// Reads from a state folder and converts its faults to failures.
func reading<Result>(
  _ folder: ProverFolder, _ body: () throws(StateFolderFault) -> Result
) throws(Failure) -> Result {
  do throws(StateFolderFault) { return try body() } catch { throw Failure(error, folder: folder.path) }
}
