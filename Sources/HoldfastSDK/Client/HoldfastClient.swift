import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOnline
import HoldfastProver
import HoldfastVersion
import Synchronization

/// An app of one account: it fetches tokens for its APIs and for devices, keys and texts from the account's service, each after
/// the service has attested the app and its host.
///
/// Source: Approov, "SDK Interface Reference", class `Approov`. ``initialize(configuration:state:keys:options:reinit:)`` makes the
/// client of the program, which ``shared`` returns. All calls are those of a client: a fetch that is under way while the program
/// is initialised for another account ends with its own account.
///
/// A client may be used by several threads and tasks at once, and its state folder by several processes. Functions that are not
/// `async` block their thread: call them from a thread of your own, not from a task.
public final class HoldfastClient: Sendable {
  /// The prover of the account, with its own state folder: it stores measurement tokens and proves to devices.
  public let prover: Prover
  let account: InitialConfiguration
  let folder: AccountFolder
  let environment: ClientEnvironment
  let options: ClientOptions
  let keys: ProofKeys
  let state: Mutex<ClientState>
  let flights = Flights()

  /// The longest time for which a start waits for the network, in seconds.
  static let startSeconds: UInt64 = 2
  /// The number of times that each service is tried.
  static let attemptCount: UInt64 = 3

  private static let current = Mutex<HoldfastClient?>(nil)
  private static let initialization = Mutex<Void>(())

  /// The client of this program; nil before the first initialisation.
  public static var shared: HoldfastClient? { current.withLock { $0 } }

  /// Sets up the program for an account. The first start with an account asks its service for the newest configuration, for at
  /// most two seconds, and also succeeds without a network.
  ///
  /// Source: Approov, `initialize` with the update configuration `auto`.
  ///
  /// - Parameters:
  ///   - configuration: the account's initial configuration, as `holdfast-service configuration` prints it.
  ///   - state: the path of the client's state folder, mode 0700, which the call creates; its parent folder must exist.
  ///   - keys: the keys of the app's releases, such as `ProofKeys.app` from the plugin HoldfastProofKeys.
  ///   - options: the app's claims, the time for fetches, and where the carrier is.
  ///   - reinit: whether a client that exists is replaced. It goes on with its own account for the code that still has it.
  /// - Returns: the client, which ``shared`` returns from now on.
  /// - Throws: ``ClientError/alreadyInitialized``, ``ClientError/configuration(_:)``, ``ClientError/state(_:)``. The client that
  ///   exists then stays.
  @discardableResult
  public static func initialize(
    configuration: String, state: String, keys: ProofKeys, options: ClientOptions = ClientOptions(),
    reinit: Bool = false
  ) throws(ClientError) -> HoldfastClient {
    let result: Result<HoldfastClient, ClientError> = initialization.withLock { _ in
      guard reinit || shared == nil else { return .failure(.alreadyInitialized) }
      return Result { () throws(ClientError) in
        let client = try HoldfastClient(configuration: configuration, state: state, keys: keys, options: options)
        current.withLock { $0 = client }
        return client
      }
    }
    return try result.get()
  }

  /// Creates a client that is not ``shared``, for example one of several.
  ///
  /// Parameters are those of ``initialize(configuration:state:keys:options:reinit:)``.
  ///
  /// - Throws: ``ClientError/configuration(_:)``, ``ClientError/state(_:)``.
  public convenience init(
    configuration: String, state: String, keys: ProofKeys, options: ClientOptions = ClientOptions()
  ) throws(ClientError) {
    try self.init(configuration: configuration, state: state, keys: keys, options: options, environment: nil)
  }

  /// Creates a client in another environment than the real one, for tests.
  package init(
    configuration: String, state path: String, keys: ProofKeys, options: ClientOptions, environment: ClientEnvironment?
  ) throws(ClientError) {
    do throws(ConfigurationFault) { account = try InitialConfiguration(configuration) } catch {
      throw .configuration(error)
    }
    do throws(FileError) { folder = try AccountFolder(state: path, account: account.keyID) } catch {
      throw .state(error)
    }
    var prover = Prover(state: folder.proverPath, keys: keys)
    prover.measurementPolicy = options.measurementPolicy
    self.prover = prover
    (self.keys, self.options) = (keys, options)
    self.environment = environment ?? .live(options, prover: prover, keys: keys)
    let stored = folder.configuration(of: account)
    state = Mutex(ClientState(configuration: stored, deviceID: folder.deviceID))
    options.log(
      "holdfast: account \(hexadecimal(account.keyID)), app \(options.app.subject?.description ?? "unnamed") "
        + "\(options.app.version?.text ?? "0.0.0"), library \(HoldfastVersion.description), device \(deviceID ?? "none")"
    )
    if stored == nil { updateConfiguration(announcing: false) }
  }
}

/// A reason why a client could not be set up, or cannot do what was asked for. It contains names of files, never secrets.
public enum ClientError: Error {
  /// The program was initialised before, and no reinitialisation was asked for.
  case alreadyInitialized
  /// The text is not the initial configuration of an account.
  case configuration(ConfigurationFault)
  /// The state folder cannot be used.
  case state(FileError)
  /// The text is not a development key: 26 characters of base32.
  case developmentKey
  /// The nonce of a proof has its top bit set, as only those of sessions have.
  case reservedNonce
  /// The app or its host could not be measured, or the measurement configuration is not one of this app.
  case measurement(MeasurementError)
  /// The cryptographic library failed.
  case cryptography
}

/// The memory of a client while it runs.
struct ClientState: Sendable {
  /// The newest configuration; nil if none was received yet.
  var configuration: AccountConfiguration?
  /// Whether ``configuration`` is newer than what the app has read.
  var isConfigurationChanged = false
  /// Whether ``configuration`` is the newest one, as services have said; nil if none was asked.
  var configurationStatus: FetchStatus?
  /// Whether a service has answered this client.
  var hasAnswer = false
  /// The revision from which pins have to be applied, as the service said last.
  var forcedPins: UInt64 = 0
  /// The revision of the pins that the app read last; nil if it read none.
  var readPins: UInt64?
  /// The id that the service gave this host.
  var deviceID: FixedBytes<16>?
  /// The tokens for API domains.
  var tokens = TokenCache()
  /// The account's texts, with the digest of the measurement that they are bound to.
  var strings: (fetched: FetchedStrings, measurement: Digest)?
  /// The key for signatures over messages; nil if there is none.
  var messageKey: MessageKey?
  /// The parts of the next attestation that the app determines.
  var statements = AttestationStatements()
  /// The number of changes of ``statements``.
  private(set) var generation = 0
  /// The number of refusals so far. What was asked for before the last one is not kept.
  var refusalCount = 0

  init(configuration: AccountConfiguration?, deviceID: FixedBytes<16>?) {
    (self.configuration, self.deviceID) = (configuration, deviceID)
  }

  /// Makes the next fetch attest the app anew.
  mutating func beginAnew() {
    generation += 1
    tokens.removeAll()
  }

  /// Whether the pins that the app read last are older than those that are forced.
  var hasForcedPins: Bool { readPins.map { $0 < max(forcedPins, configuration?.forcedPins ?? 0) } ?? false }
}

/// The parts of an attestation that the app determines.
struct AttestationStatements: Sendable {
  /// The digest of the data to which tokens are bound; nil for none.
  var dataHash: Digest?
  /// The text for operators; nil for none.
  var userProperty: BoundedText<128>?
  /// Whether the components are named that differ from the baselines.
  var reportsChanges = false
  /// The key with which an app passes that is being developed; nil for none.
  var developmentKey: DevelopmentKey?

  /// Returns whether an attestation with the other statements says the same.
  func isSame(as other: AttestationStatements) -> Bool {
    dataHash == other.dataHash && userProperty == other.userProperty && reportsChanges == other.reportsChanges
      && (developmentKey.map { $0.isSame(as: other.developmentKey) } ?? (other.developmentKey == nil))
  }
}
