import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastTransport

/// An app that proves itself to devices, with its enrolments in a state folder.
///
/// It may be used by several threads and tasks at once, and a state folder by several processes. Functions that are not `async`
/// block their thread: call them from a thread of your own, not from a task.
public struct Prover: Sendable {
  /// The folder with the enrolments.
  package let folder: ProverFolder
  let keys: ProofKeys
  /// The use of the posture in enrolments that this value makes.
  public var postureUse: PostureUse = []
  /// The ways of measuring, permitted or demanded, of the enrolments that this value makes. A service that does not know one
  /// refuses the evidence.
  public var measurementPolicy: MeasurementPolicy = Prover.defaultMeasurementPolicy
  /// Without a policy, enrolments are as they always were, and every service accepts their evidence.
  public static let defaultMeasurementPolicy: MeasurementPolicy = []
  let warn: @Sendable (ProverWarning) -> Void
  /// The source of the time and the versions by which terms are checked.
  package var host = HostSource.system

  /// Creates a prover. Nothing is read or written yet.
  ///
  /// - Parameters:
  ///   - path: the path of the state folder, which the first enrolment creates.
  ///   - keys: the keys of the app's releases, such as `ProofKeys.app` from the plugin HoldfastProofKeys.
  ///   - warn: called from any thread with what the owner of the app should know, although the prover goes on.
  public init(
    state path: String, keys: ProofKeys, warn: @escaping @Sendable (ProverWarning) -> Void = { _ in }
  ) {
    (folder, self.keys, self.warn) = (ProverFolder(path: path), keys, warn)
  }

  /// Measures the app and its host, connects to a device, proves to it, and has it carry out a request.
  ///
  /// Each call makes a new connection. If a device has no room, the call connects again until the time is over.
  ///
  /// - Parameters:
  ///   - request: the command, its parameters, and codes of a user. The prover numbers it.
  ///   - endpoint: the address at which the device serves.
  ///   - options: the device that must answer, the time, and how the proof is watched and ended.
  /// - Returns: the device's verdict, also if it is a denial.
  /// - Throws: an error if there is no verdict: ``ProverError/state(_:)`` before anything is measured or sent, if there is no
  ///   enrolment or the folder is of another kind or version; ``ProverError/refused(_:)`` before anything is sent, if the issuer's
  ///   terms do not permit a proof; ``ProverError/transport(_:)`` if the device cannot be reached, ends
  ///   the connection, or is silent for too long (a timeout of zero or less allows no wait); ``ProverError/session(_:)`` if its
  ///   messages are cut short or are not those of a device; ``ProverError/cancelled``. The request may have been carried out if
  ///   it was sent. A full disk is only a ``ProverWarning``.
  public func prove(
    _ request: borrowing Request, at endpoint: Endpoint, options: ProofOptions = ProofOptions()
  ) throws(ProverError) -> ProofOutcome {
    let enrolments = try choice(options.device)
    return try proof(enrolments, request, options).run(at: endpoint)
  }

  /// The same over a channel that is already connected to the device, and on which nothing has been received yet. A cancelled
  /// proof shuts it down; otherwise it stays open, also for the next proof.
  ///
  /// Only one proof at a time may use a channel, because two would take each other's messages. That is checked for each channel
  /// that is an object, such as a `Connection`; a channel of a value type has no identity to check.
  ///
  /// - Throws: also ``ProverError/channelInUse``, at once, while another proof is running over the channel.
  public func prove(
    _ request: borrowing Request, over channel: any MessageChannel, options: ProofOptions = ProofOptions()
  ) throws(ProverError) -> ProofOutcome {
    let enrolments = try choice(options.device)
    return try proof(enrolments, request, options).run(over: channel)
  }

  /// Compares the app and its host with the baselines of the enrolments.
  ///
  /// - Parameter device: the only device whose baseline counts; nil for all enrolled devices.
  /// - Returns: the changes for each device, in the order of their ids.
  /// - Throws: ``ProverError/state(_:)`` if nothing is enrolled, the folder is of another kind, or an enrolment is damaged or of
  ///   another version; ``ProverError/measurement(_:)``.
  public func explain(device: DeviceID? = nil) throws(ProverError) -> [(device: DeviceID, changes: ComponentChanges)] {
    let enrolments = try enrolments(of: device)
    var measurer = Measurer(keys: keys)
    var all: [(device: DeviceID, changes: ComponentChanges)] = []
    do throws(MeasurementError) {
      for enrolment in enrolments {
        let changes = try measurer.changes(since: enrolment.fingerprints, for: try enrolment.decodedConfiguration())
        all.append((enrolment.descriptor.deviceID, changes))
      }
    } catch { throw .measurement(error) }
    return all
  }

  /// Returns the state of each enrolment, in the order of the devices' ids.
  ///
  /// - Parameters:
  ///   - device: the only device to return; nil for all enrolled devices.
  ///   - now: the present time, in Unix seconds; nil if there is no clock.
  /// - Throws: ``ProverError/state(_:)`` if nothing is enrolled, or the folder is of another kind.
  public func status(
    device: DeviceID? = nil, now: UInt64? = SystemClock().unixSeconds()
  ) throws(ProverError) -> [EnrolmentState] {
    let host = host
    return try entries(of: device).map { EnrolmentState($0, now: now, host: host) }
  }

  var termsCheck: TermsCheck { TermsCheck(folder: folder, host: host, warn: warn) }

  /// Reads the enrolments; each must be intact.
  func enrolments(of device: DeviceID?) throws(ProverError) -> [Enrolment] {
    let entries = try entries(of: device)
    var enrolments: [Enrolment] = []
    do throws(StateFolderFault) {
      for entry in entries {
        let enrolment = try entry.load()
        guard enrolment.hasOwnConfiguration else { throw entry.folder.damaged(EnrolmentFolder.configurationName) }
        enrolments.append(enrolment)
      }
    } catch { throw .state(error) }
    return enrolments
  }

  private func entries(of device: DeviceID?) throws(ProverError) -> [ProverFolder.Entry] {
    do throws(StateFolderFault) {
      if let device { return [try folder.requiredEntry(of: device)] }
      let entries = try folder.entries()
      guard !entries.isEmpty else { throw try folder.nothingEnrolled() }
      return entries
    } catch { throw .state(error) }
  }

  func choice(_ device: DeviceID?) throws(ProverError) -> EnrolmentChoice {
    do throws(StateFolderFault) { return try EnrolmentChoice(folder, expecting: device) } catch { throw .state(error) }
  }

  /// Prepares a proof, unless the rules about the posture refuse.
  package func proof(
    _ enrolments: EnrolmentChoice, _ request: borrowing Request, _ options: ProofOptions
  ) throws(ProverError) -> Proof {
    try checkPosture()
    return Proof(
      enrolments: enrolments, keys: keys, request: request.copy(), options: options, host: host, warn: warn)
  }
}

/// The conditions of one proof.
public struct ProofOptions: Sendable {
  /// The device that must answer; nil for any enrolled device.
  public var device: DeviceID?
  /// The time from connecting to the verdict, in milliseconds.
  public var timeoutMilliseconds: Int
  /// A way to end the proof from another thread.
  public var cancellation: Cancellation?
  /// The budget for delivering bulletins to the device, once it has accepted the command. Over a channel, none are delivered.
  public var courier = CourierBudget()
  /// Called at the beginning of each stage, on the thread that proves.
  public var progress: @Sendable (ProofStage) -> Void

  /// Creates the conditions. By default, any enrolled device may answer within 30 seconds.
  public init(
    device: DeviceID? = nil, timeoutMilliseconds: Int = 30_000, cancellation: Cancellation? = nil,
    progress: @escaping @Sendable (ProofStage) -> Void = { _ in }
  ) {
    (self.device, self.timeoutMilliseconds) = (device, timeoutMilliseconds)
    (self.cancellation, self.progress) = (cancellation, progress)
  }
}

/// A stage of a proof.
public enum ProofStage: Sendable, Hashable {
  /// The prover enrols for the device first, because it has no enrolment that can be used.
  case enrolling(DeviceID)
  /// The app and its host are measured.
  case measuring
  /// The connection is made, and the device's challenge awaited.
  case connecting
  /// The device has identified itself, and is sent a proof. It may come again, if the device asks for the whole token.
  case proving(DeviceID)
  /// The device has the proof, and its verdict is awaited. From here on it may act.
  case waiting(DeviceID)
}
