import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL

/// The enrolments that may answer a device: all of a state folder's, or the one that the user insists on.
///
/// M1 says which device is there. Nothing is sent to one that is not enrolled, or that has another key than the enrolled one.
struct EnrolmentChoice {
  let folder: ProverFolder
  /// The device that the user insists on.
  let expected: DeviceID?
  /// The only enrolment that can be meant, where that is known already: its faults show before anybody is connected to.
  private let only: Enrolment?

  /// - Throws: `nothingEnrolled`, `notEnrolled`, and as ``EnrolmentFolder/load()`` where only one enrolment can be meant.
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

  /// The enrolment of the device whose M1 came.
  ///
  /// - Throws: `anotherDevice`, `notEnrolled`, `anotherKey`, and as ``EnrolmentFolder/load()``.
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

  /// Whether the device took the enrolment's token whole before.
  func isRemembered(_ enrolment: Enrolment) -> Bool {
    guard let entry = try? folder.entry(of: enrolment.descriptor.deviceID) else { return false }
    return entry.folder.isRemembered(enrolment.token)
  }

  /// The numbers of the requests to the enrolment's device.
  func requestNumbers(of enrolment: Enrolment) throws(Failure) -> RequestNumbers {
    do throws(StateFolderFault) {
      return RequestNumbers(folder: try folder.requiredEntry(of: enrolment.descriptor.deviceID).folder.path)
    } catch { throw Failure(error, folder: folder.path) }
  }

  /// Notes that the device, which proved itself, took the enrolment's token.
  func setRemembered(_ enrolment: Enrolment) throws(StateFolderFault) {
    // An enrolment that another process has removed meanwhile needs no note.
    guard let entry = try folder.entry(of: enrolment.descriptor.deviceID) else { return }
    try entry.folder.setRemembered(enrolment.token)
  }
}

extension Enrolment {
  typealias Session = ProverSession<OpenSSLCryptography, SystemRandom>

  /// A session in which every round proves `measurement`, which was taken a moment ago.
  ///
  /// - Throws: as ``Measurer/provableMeasurements(of:for:)``.
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

/// The state folder of a prover, and the device that must answer where the user insists on one.
struct StateOptions: ParsableArguments {
  @Option(help: "The state folder that enroll filled.", completion: .directory)
  var state: String

  @Option(
    help:
      "The device that must answer: its id, 32 hexadecimal digits, or its descriptor. Any enrolled one when absent.",
    completion: .file())
  var device: String?

  var folder: ProverFolder { ProverFolder(path: state) }

  /// The enrolments that may be proved.
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
  /// A device of the command line: 32 hexadecimal digits, or a file with a descriptor.
  init(deviceArgument text: String) throws(Failure) {
    if let id: DeviceID = fixedBytes(hexadecimal: text.lowercased()) {
      self = id
      return
    }
    guard !text.isEmpty else {
      throw Failure(.usage, "--device is a device's id of 32 hexadecimal digits, or the file with its descriptor")
    }
    self = try DeviceDescriptor(file: text).deviceID
  }
}

extension EnrolmentChoice {
  /// Why a device could not but deny an enrolment's proof; nil where the enrolment is whole.
  func damage(of enrolment: Enrolment) -> Failure? {
    guard !enrolment.hasOwnConfiguration, let entry = try? folder.entry(of: enrolment.descriptor.deviceID) else {
      return nil
    }
    return Failure(entry.folder.damaged(EnrolmentFolder.configurationName), folder: folder.path)
  }
}

/// Writes into a state folder, with the faults as the command line tells them: the folder above it may be at fault.
func writing(
  _ folder: ProverFolder, _ body: () throws(StateFolderFault) -> Void
) throws(Failure) {
  do throws(StateFolderFault) { try body() } catch {
    if case .file(let fault) = error, fault.path == folder.path { throw Failure(making: fault) }
    if case .file(let fault) = error { throw Failure(fault) }
    throw Failure(error, folder: folder.path)
  }
}

/// Reads a state folder, with the faults as the command line tells them.
func reading<Result>(
  _ folder: ProverFolder, _ body: () throws(StateFolderFault) -> Result
) throws(Failure) -> Result {
  do throws(StateFolderFault) { return try body() } catch { throw Failure(error, folder: folder.path) }
}
