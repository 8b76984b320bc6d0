import ArgumentParser
import HoldfastCore
import HoldfastKeys

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
