import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage
import HoldfastTransport
import Synchronization

/// Serves a device's folder at its endpoints: a thread for each of them accepts, and each connection has a thread.
///
/// One process serves a folder at a time. ``run()`` blocks; ``stop()`` ends it from any other thread.
public final class DeviceServer<Random: RandomSource & Sendable, Time: Clock & Sendable>: Sendable {
  /// What it serves.
  public let folder: DeviceFolder
  let options: ServerOptions
  let random: Random
  let clock: Time
  let notify: @Sendable (ServerNotice) -> Void
  let secrets: DeviceSecrets
  let ledger: Ledger
  let memory: TokenMemory
  let lock: SimulatedLock
  let watch: PolicyWatch
  let reception: Reception
  let bootCount: UInt64
  let connections: ConnectionTable
  /// Counts threads: an ended connection has one for a moment longer than its place.
  let gate: WorkerGate
  /// Nothing once the server has ended.
  private let serving: Mutex<DirectoryLock?>

  /// Takes the folder, begins to listen and counts the start; peers wait until ``run()``.
  ///
  /// - Parameters:
  ///   - folder: the device.
  ///   - endpoints: where provers reach it, at least one.
  ///   - notify: called from any thread; it must not block for long.
  /// - Throws: `folder` (`inUse` when another process serves it), `endpoint`, `ledger`, `noDescriptors` (also where fewer are
  ///   allowed than its connections may need).
  public init(
    folder: DeviceFolder, endpoints: [Endpoint], options: ServerOptions = ServerOptions(), random: Random, clock: Time,
    notify: @escaping @Sendable (ServerNotice) -> Void = { _ in }
  ) throws(ServerFault) {
    do throws(FileError) {
      serving = Mutex(try DirectoryLock(directory: folder.path))
    } catch { throw .folder(DeviceFolderFault(lock: error, in: folder.path)) }
    do throws(DeviceFolderFault) {
      secrets = try folder.secrets()
      ledger = try folder.openLedger(limits: options.ledgerLimits)
      lock = try folder.openLock()
    } catch { throw .folder(error) }
    // Two for each thread that there may be, and some: strangers must not keep the policy from being read.
    guard DescriptorLimit.raise(to: 4 * options.connectionCount + 64),
      let gate = WorkerGate(limit: 2 * options.connectionCount)
    else {
      throw .noDescriptors
    }
    reception = try Reception(at: endpoints, waitingCount: options.waitingCount)
    do throws(LedgerError) {
      bootCount = try ledger.start(realClock: clock.unixSeconds())
    } catch { throw .ledger(LedgerFault(error)) }
    (self.folder, self.options, self.random, self.clock) = (folder, options, random, clock)
    (self.notify, self.gate) = (notify, gate)
    connections = ConnectionTable(
      limit: options.connectionCount, provingMilliseconds: options.timing.provingMilliseconds)
    memory = TokenMemory(capacity: options.rememberedTokenCount)
    watch = PolicyWatch(folder.policy, ledger: ledger, notify: notify)
  }

  /// Where it is reached; a Bluetooth port that was left open is filled in.
  public var endpoints: [Endpoint] { reception.listeners.map(\.endpoint) }

  /// Serves until ``stop()``, then ends every connection, leaves the ledger complete and gives the folder up. A second call
  /// does nothing.
  ///
  /// Throws `endpoint` when an endpoint is gone, after everything was ended all the same.
  public func run() throws(ServerFault) {
    guard let serving = serving.withLock({ $0.take() }) else { return }
    _ = watch.policy(realClock: clock.unixSeconds())
    let recorder = startRecorder()
    reception.run(admit: { self.admit($0) }, report: { self.notify(.acceptFault($0)) })
    connections.endAll()
    gate.closeAndWait()
    recorder?.closeAndWait()
    finishLedger()
    _ = consume serving
    if let fault = reception.fault { throw fault }
  }

  /// How far the peers of a Bluetooth host have come, those over Low Energy: what an ``Advertisement`` asks for before it ends a
  /// link that keeps others out.
  ///
  /// - Parameters:
  ///   - host: the address of the host's adapter.
  public func standing(of host: BluetoothAddress) -> LinkStanding {
    connections.standing(of: host, atMilliseconds: clock.monotonicMilliseconds())
  }

  /// Ends ``run()``: from any thread, any number of times, also before it began.
  public func stop() {
    reception.stop()
  }

  /// Writes totals and counts once a minute, whether or not anybody comes; nil where there can be no thread for it, and they are
  /// written with rounds only.
  private func startRecorder() -> WorkerGate? {
    guard let gate = WorkerGate(limit: 1), gate.enter() else { return nil }
    let isStarted = startThread { [self] in
      defer { gate.leave() }
      while !reception.waitForStop(milliseconds: DeniedCounter.intervalMilliseconds) {
        ledger.recordTotals(milliseconds: clock.monotonicMilliseconds(), realClock: clock.unixSeconds())
        ledger.dropCutEntries()
      }
    }
    if isStarted { return gate }
    gate.leave()
    return nil
  }

  private func finishLedger() {
    let realClock = clock.unixSeconds()
    ledger.recordTotals(milliseconds: clock.monotonicMilliseconds(), realClock: realClock, isForced: true)
    do throws(LedgerError) {
      try ledger.record(.stopped, realClock: realClock)
      try ledger.checkpoint()
    } catch {
      notify(.ledgerFault(LedgerFault(error)))
    }
  }
}
