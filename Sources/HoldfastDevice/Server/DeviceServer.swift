import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage
import HoldfastTransport
import Synchronization

/// Serves a device's folder at an endpoint: one thread accepts, and each connection has a thread.
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
  let listener: Listener
  let bootCount: UInt64
  let connections: ConnectionTable
  /// Counts threads: an ended connection has one for a moment longer than its place.
  let gate: WorkerGate
  let stopFlag: StopFlag
  /// Nothing once the server has ended.
  private let serving: Mutex<DirectoryLock?>

  /// Takes the folder, begins to listen and counts the start; peers wait until ``run()``.
  ///
  /// - Parameters:
  ///   - folder: the device.
  ///   - endpoint: where provers reach it.
  ///   - notify: called from any thread; it must not block for long.
  /// - Throws: `folder` (`inUse` when another process serves it), `endpoint`, `ledger`, `noDescriptors` (also where fewer are
  ///   allowed than its connections may need).
  public init(
    folder: DeviceFolder, endpoint: Endpoint, options: ServerOptions = ServerOptions(), random: Random, clock: Time,
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
      let gate = WorkerGate(limit: 2 * options.connectionCount), let stopFlag = StopFlag()
    else {
      throw .noDescriptors
    }
    do throws(TransportError) {
      listener = try Listener(endpoint, backlog: options.waitingCount)
    } catch { throw .endpoint(error) }
    do throws(LedgerError) {
      bootCount = try ledger.start(realClock: clock.unixSeconds())
    } catch { throw .ledger(LedgerFault(error)) }
    (self.folder, self.options, self.random, self.clock) = (folder, options, random, clock)
    (self.notify, self.gate, self.stopFlag) = (notify, gate, stopFlag)
    connections = ConnectionTable(
      limit: options.connectionCount, provingMilliseconds: options.timing.provingMilliseconds)
    memory = TokenMemory(capacity: options.rememberedTokenCount)
    watch = PolicyWatch(folder.policy, ledger: ledger, notify: notify)
  }

  /// Serves until ``stop()``, then ends every connection, leaves the ledger complete and gives the folder up. A second call
  /// does nothing.
  ///
  /// Throws `endpoint` when the endpoint is gone, after everything was ended all the same.
  public func run() throws(ServerFault) {
    guard let serving = serving.withLock({ $0.take() }) else { return }
    _ = watch.policy(realClock: clock.unixSeconds())
    let fault = acceptPeers()
    stopFlag.raise()
    listener.close()
    connections.endAll()
    gate.closeAndWait()
    finishLedger()
    _ = consume serving
    if let fault { throw .endpoint(fault) }
  }

  /// Ends ``run()``: from any thread, any number of times, also before it began.
  public func stop() {
    stopFlag.raise()
    listener.cancel()
  }

  /// Accepts until the server is stopped; says why when the endpoint is gone instead.
  private func acceptPeers() -> TransportError? {
    while !stopFlag.isRaised {
      do throws(TransportError) {
        admit(try listener.accept())
      } catch {
        switch error {
        case .cancelled: return nil
        case .closed, .notFound: return error
        default:
          notify(.acceptFault(error))
          stopFlag.wait(milliseconds: 100)
        }
      }
    }
    return nil
  }

  private func finishLedger() {
    let realClock = clock.unixSeconds()
    ledger.recordUnproved(
      milliseconds: clock.monotonicMilliseconds(), realClock: realClock, isForced: true)
    do throws(LedgerError) {
      try ledger.record(.stopped, realClock: realClock)
      try ledger.checkpoint()
    } catch {
      notify(.ledgerFault(LedgerFault(error)))
    }
  }
}
