import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastProver
import HoldfastTransport

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

extension DeviceID {
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

/// Changes a state folder and converts errors to failures. The parent folder may be the cause.
func writing<Result>(_ state: String, _ body: (Prover) throws(ProverError) -> Result) throws(Failure) -> Result {
  do throws(ProverError) { return try body(Prover(state: state, keys: .app, warn: Console.warn)) } catch {
    throw Failure(writing: error, in: state)
  }
}

extension Failure {
  fileprivate init(writing error: ProverError, in state: String) {
    if case .state(.file(let fault)) = error {
      self = fault.path == state ? Failure(making: fault) : Failure(fault)
    } else {
      self.init(error, folder: state)
    }
  }

  /// Creates the failure of a prover's call whose exchange throws failures.
  init(exchanging error: any Error, in state: String) {
    switch error {
    case let failure as Failure: self = failure
    case let error as ProverError: self.init(writing: error, in: state)
    default: self.init(.fault, "the prover failed in an unexpected way")
    }
  }
}

/// Reads from a state folder and converts its faults to failures.
func reading<Result>(
  _ folder: ProverFolder, _ body: () throws(StateFolderFault) -> Result
) throws(Failure) -> Result {
  do throws(StateFolderFault) { return try body() } catch { throw Failure(error, folder: folder.path) }
}

/// Runs a part of a proof or of an activation, and converts its errors to failures.
func proving<Result>(
  in folder: ProverFolder, at endpoint: Endpoint, _ body: () throws(ProverError) -> Result
) throws(Failure) -> Result {
  do throws(ProverError) { return try body() } catch {
    throw Failure(error, folder: folder.path, endpoint: endpoint)
  }
}

/// Reads a prover's state folder without connecting to a device, and converts errors to failures.
func reading<Result>(_ state: String, _ body: (Prover) throws(ProverError) -> Result) throws(Failure) -> Result {
  do throws(ProverError) { return try body(Prover(state: state, keys: .app, warn: Console.warn)) } catch {
    throw Failure(error, folder: state)
  }
}
