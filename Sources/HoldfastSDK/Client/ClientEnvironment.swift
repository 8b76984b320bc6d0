import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastProver

/// The conditions of a client.
public struct ClientOptions: Sendable {
  /// The app's statements about itself. The service's policy determines name and version.
  public var app: AppClaims
  /// The path of the program `holdfast-carrier`; nil for the usual one: next to the app's program, in `../libexec/holdfast` from
  /// there, or in `/usr/libexec/holdfast`.
  public var carrier: String?
  /// The file with the only certificate authorities that count; nil for those of the system.
  public var authorities: String?
  /// The time for all attempts of a fetch, 1 to 600 seconds. Each service is tried at most three times.
  public var timeoutSeconds: UInt64
  /// The ways of measuring, permitted or demanded, of the client's enrolments and evidence. A service may refuse them.
  public var measurementPolicy: MeasurementPolicy
  /// Called from any thread with lines that may be logged: one at the start, with the account and the versions, and one for each
  /// fetch that fails. They contain no secrets. It must not call the client.
  public var log: @Sendable (_ line: String) -> Void

  /// Creates the conditions.
  public init(
    app: AppClaims = AppClaims(), carrier: String? = nil, authorities: String? = nil, timeoutSeconds: UInt64 = 10,
    measurementPolicy: MeasurementPolicy = Prover.defaultMeasurementPolicy,
    log: @escaping @Sendable (_ line: String) -> Void = { _ in }
  ) {
    (self.app, self.carrier, self.authorities) = (app, carrier, authorities)
    (self.timeoutSeconds, self.measurementPolicy, self.log) = (timeoutSeconds, measurementPolicy, log)
  }
}

/// The world around a client: the services, the measurements, and the clocks.
package struct ClientEnvironment: Sendable {
  /// A way to the services.
  package var caller: any ServiceCaller
  /// The measurements.
  package var measurer: any AppMeasurer
  /// Returns the present moment.
  package var now: @Sendable () -> Moment
  /// The id of this start of the machine.
  package var bootID: String
  /// Returns whether this host has a way to other networks.
  package var hasNetwork: @Sendable () -> Bool

  /// Creates an environment.
  package init(
    caller: any ServiceCaller, measurer: any AppMeasurer, now: @escaping @Sendable () -> Moment, bootID: String,
    hasNetwork: @escaping @Sendable () -> Bool
  ) {
    (self.caller, self.measurer, self.now, self.bootID) = (caller, measurer, now, bootID)
    self.hasNetwork = hasNetwork
  }

  /// The real world.
  static func live(_ options: ClientOptions, prover: Prover, keys: ProofKeys) -> ClientEnvironment {
    let bootID = (try? Files.readFile(at: "/proc/sys/kernel/random/boot_id", limit: 64)) ?? []
    return ClientEnvironment(
      caller: CarrierCaller(path: options.carrier ?? CarrierCaller.usualPath, authorities: options.authorities),
      measurer: LiveAppMeasurer(prover: prover, keys: keys),
      now: { Moment(unixSeconds: SystemClock().unixSeconds(), bootSeconds: SteadyClock.bootSeconds()) },
      bootID: String(decoding: bootID, as: UTF8.self), hasNetwork: { HostNetwork.hasDefaultRoute })
  }
}
