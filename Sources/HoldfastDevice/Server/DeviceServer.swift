import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage
import HoldfastTransport
import Synchronization

/// Serves a device's folder at its endpoints: a thread for each of them accepts, and each connection has a thread.
///
/// One process serves a folder at a time. ``run()`` blocks; ``stop()`` ends it from any other thread.
package final class DeviceServer<Random: RandomSource & Sendable, Time: Clock & Sendable>: Sendable {
  /// What it serves.
  package let folder: DeviceFolder
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
  package init(
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
  package var endpoints: [Endpoint] { reception.listeners.map(\.endpoint) }

  /// Serves until ``stop()``, then ends every connection, leaves the ledger complete and gives the folder up. A second call
  /// does nothing.
  ///
  /// Throws `endpoint` when an endpoint is gone, after everything was ended all the same.
  package func run() throws(ServerFault) {
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
  package func standing(of host: BluetoothAddress) -> LinkStanding {
    connections.standing(of: host, atMilliseconds: clock.monotonicMilliseconds())
  }

  /// Ends ``run()``: from any thread, any number of times, also before it began.
  package func stop() {
    reception.stop()
  }

  /// Writes totals and counts once a minute, whether or not anybody comes; nil where there can be no thread for it, and they are
  /// written with rounds only.
  private func startRecorder() -> WorkerGate? {
    guard let gate = WorkerGate(limit: 1), gate.enter() else { return nil }
    let isStarted = Thread.detach { [self] in
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

extension DeviceServer {
  /// Gives a peer a place and a thread, or sends it away.
  func admit(_ connection: Connection) {
    guard gate.enter() else { return sendAway(connection) }
    guard let number = connections.add(connection, atMilliseconds: clock.monotonicMilliseconds()) else {
      gate.leave()
      return sendAway(connection)
    }
    let isStarted = Thread.detach { [self] in
      defer { gate.leave() }
      serve(connection, number: number)
    }
    if !isStarted {
      _ = connections.remove(number)
      gate.leave()
      sendAway(connection)
    }
  }

  /// Answers `busy`. It must not hold up the thread that accepts: what does not fit into the socket is not said.
  private func sendAway(_ connection: Connection) {
    var message = ByteBuffer<8>()
    do throws(EncodingFault) { try VerdictMessage.encode(unsealed: .busy, into: &message) } catch { return }
    try? connection.send(message.bytes, timeoutMilliseconds: 0)
    notify(.busy)
    countBusy()
  }

  private func countBusy() {
    ledger.unproved.add(.busy)
    ledger.recordTotals(milliseconds: clock.monotonicMilliseconds(), realClock: clock.unixSeconds())
  }

  private func serve(_ connection: Connection, number: UInt64) {
    defer { release(number) }
    let key: P256PrivateKey
    do throws(CryptographyFailure) { key = try secrets.key() } catch {
      return notify(.fault(connection: number, .cryptography))
    }
    notify(.connected(connection: number, connection.peer))
    let policy = SessionPolicy()
    let session = DeviceSession(
      deviceID: folder.descriptor.deviceID, keyID: folder.descriptor.keyID, cryptography: OpenSSLCryptography(),
      key: key, store: SessionStore(ledger: ledger, memory: memory, clock: clock), policy: policy, random: random,
      clock: clock, challenges: secrets.challenges(bootCount: bootCount, connection: number))
    var loop = ConnectionLoop(
      connection: connection, number: number, timing: options.timing, clock: clock, watch: watch, table: connections,
      notify: notify, policy: policy, session: session,
      actuator: LockActuator(lock))
    loop.run()
    connection.linger(milliseconds: options.timing.farewellMilliseconds)
  }

  private func release(_ number: UInt64) {
    if connections.remove(number) { return notify(.disconnected(connection: number)) }
    notify(.displaced(connection: number))
    countBusy()
  }
}

/// How long a server waits, in milliseconds. The defaults are those of docs/protocol.md, where it has one.
package struct ServerTiming: Sendable {
  /// From M1 to the first byte of M2.
  package var answerMilliseconds: Int
  /// From the first byte of M2 to its last.
  package var messageMilliseconds: Int
  /// For a peer to take a message.
  package var sendMilliseconds: Int
  /// The longest that an answer to failed proofs is held back.
  package var greatestDelayMilliseconds: UInt64
  /// For a peer to read the last message before its connection is closed, where closing could take it back.
  package var farewellMilliseconds: Int
  /// For a new peer to prove itself before its place may go to another one.
  package var provingMilliseconds: UInt64

  package init(
    answerMilliseconds: Int = 30_000, messageMilliseconds: Int = 10_000, sendMilliseconds: Int = 10_000,
    greatestDelayMilliseconds: UInt64 = 1000, farewellMilliseconds: Int = 1000, provingMilliseconds: UInt64 = 2000
  ) {
    self.answerMilliseconds = answerMilliseconds
    self.messageMilliseconds = messageMilliseconds
    self.sendMilliseconds = sendMilliseconds
    self.greatestDelayMilliseconds = greatestDelayMilliseconds
    self.farewellMilliseconds = farewellMilliseconds
    self.provingMilliseconds = provingMilliseconds
  }
}

/// How much a server takes on. The defaults are the limits for a host in docs/protocol.md, Limits.
package struct ServerOptions: Sendable {
  /// How many connections are served at once. Where all places are taken, a new peer gets that of one that has not proved
  /// itself in time, or else is answered `busy`.
  package var connectionCount: Int
  /// How many peers may wait to be accepted.
  package var waitingCount: Int
  /// How many opened tokens are remembered.
  package var rememberedTokenCount: Int
  package var ledgerLimits: LedgerLimits
  package var timing: ServerTiming

  package init(
    connectionCount: Int = 64, waitingCount: Int = 128, rememberedTokenCount: Int = TokenMemory.usualCapacity,
    ledgerLimits: LedgerLimits = LedgerLimits(), timing: ServerTiming = ServerTiming()
  ) {
    self.connectionCount = connectionCount
    self.waitingCount = waitingCount
    self.rememberedTokenCount = rememberedTokenCount
    self.ledgerLimits = ledgerLimits
    self.timing = timing
  }
}
