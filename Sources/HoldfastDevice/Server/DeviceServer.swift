import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage
import HoldfastTransport
import Synchronization

/// A server of a device's folder. One thread for each endpoint accepts peers, and each connection has a thread.
///
/// Only one process serves a folder at a time. ``run()`` blocks; ``stop()`` ends it from any other thread.
package final class DeviceServer<Random: RandomSource & Sendable, Time: Clock & Sendable>: Sendable {
  /// The folder that the server serves.
  package let folder: DeviceFolder
  let options: ServerOptions
  let random: Random
  let clock: Time
  let notify: @Sendable (ServerNotice) -> Void
  let secrets: DeviceSecrets
  let ledger: Ledger
  package let memory: TokenMemory
  let lock: SimulatedLock
  let watch: PolicyWatch
  let reception: AcceptLoop
  let bootCount: UInt64
  let connections: ConnectionTable
  /// The gate that counts threads. The thread of an ended connection lives a moment longer than its place.
  let gate: WorkerGate
  /// The lock on the folder; nil once the server has run.
  private let serving: Mutex<DirectoryLock?>

  /// Locks the folder, begins to listen, and counts the start. Peers wait until ``run()``.
  ///
  /// - Parameters:
  ///   - folder: the folder of the device.
  ///   - endpoints: the addresses at which provers connect, at least one.
  ///   - notify: called from any thread; it must not block for long.
  /// - Throws: `folder` (a fault `locked` if another process serves it), `endpoint`, `ledger`, `noDescriptors` (also if fewer are
  ///   allowed than its connections may need).
  package init(
    folder: DeviceFolder, endpoints: [Endpoint], options: ServerOptions = ServerOptions(), random: Random, clock: Time,
    notify: @escaping @Sendable (ServerNotice) -> Void = { _ in }
  ) throws(ServerFault) {
    do throws(FileError) {
      serving = Mutex(try DirectoryLock(directory: folder.path))
    } catch { throw .folder(.folder(error)) }
    do throws(DeviceFolderFault) {
      secrets = try folder.secrets()
      ledger = try folder.openLedger(limits: options.ledgerLimits)
      lock = try folder.openLock()
    } catch { throw .folder(error) }
    // Each thread may need two, and the rest is a reserve: a flood of peers must not keep the policy from being read.
    guard DescriptorLimit.raise(to: 4 * options.connectionCount + 64),
      let gate = WorkerGate(limit: 2 * options.connectionCount)
    else {
      throw .noDescriptors
    }
    reception = try AcceptLoop(at: endpoints, waitingCount: options.waitingCount)
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

  /// The addresses at which provers connect. A Bluetooth port that was left open is filled in.
  package var endpoints: [Endpoint] { reception.listeners.map(\.endpoint) }

  /// Serves until ``stop()``. Then it ends every connection, completes the ledger, and unlocks the folder. A second call does
  /// nothing.
  ///
  /// - Throws: `endpoint` if an endpoint is lost. Everything else is ended before that.
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

  /// Returns the standing of a Bluetooth host's Low Energy connections. An ``Advertisement`` asks for it before it ends a
  /// link that keeps other hosts out.
  ///
  /// - Parameters:
  ///   - host: the address of the host's adapter.
  package func standing(of host: BluetoothAddress) -> LinkStanding {
    connections.standing(of: host, atMilliseconds: clock.monotonicMilliseconds())
  }

  /// Ends ``run()``. It may be called from any thread, any number of times, also before ``run()``.
  package func stop() {
    reception.stop()
  }

  /// Starts a thread that writes totals and counts once a minute, whether or not a peer connects. Returns nil if it cannot be
  /// started; then they are written only with rounds.
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
  /// Gives a peer a place and a thread, or refuses it.
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

  /// Answers `busy`. It must not delay the thread that accepts, so the answer is dropped if the socket does not take it at
  /// once.
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
    let session = DeviceSession<LinuxEnvironment>(
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

/// The timeouts of a server, in milliseconds. The defaults are those of docs/protocol.md where it has one.
package struct ServerTiming: Sendable {
  /// The timeout from M1 to the first byte of M2.
  package var answerMilliseconds: Int
  /// The timeout from the first byte of M2 to its last.
  package var messageMilliseconds: Int
  /// The timeout for a peer to take a message.
  package var sendMilliseconds: Int
  /// The longest delay of an answer to failed proofs.
  package var greatestDelayMilliseconds: UInt64
  /// The time that a peer has to read the last message before its connection is closed, where closing could discard it.
  package var farewellMilliseconds: Int
  /// The time that a new peer has to prove itself before a newcomer may take its place.
  package var provingMilliseconds: UInt64

  /// Makes the timeouts, in milliseconds.
  package init(
    answerMilliseconds: Int = Limit.answer.linux, messageMilliseconds: Int = Limit.wholeMessage.linux,
    sendMilliseconds: Int = 10_000,
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

/// The limits of a server's load. The defaults are the limits for a host in docs/protocol.md, Limits.
package struct ServerOptions: Sendable {
  /// The most connections that are served at once. If all places are taken, a new peer gets that of one that has not proved
  /// itself in time, or else is answered with `busy`.
  package var connectionCount: Int
  /// The most peers that may wait to be accepted.
  package var waitingCount: Int
  /// The most opened tokens that are remembered.
  package var rememberedTokenCount: Int
  /// The limits of the ledger's size.
  package var ledgerLimits: LedgerLimits
  /// The timeouts.
  package var timing: ServerTiming

  /// Makes the limits.
  package init(
    connectionCount: Int = Limit.connections.linux, waitingCount: Int = Limit.waitingPeers.linux,
    rememberedTokenCount: Int = TokenMemory.usualCapacity,
    ledgerLimits: LedgerLimits = LedgerLimits(), timing: ServerTiming = ServerTiming()
  ) {
    self.connectionCount = connectionCount
    self.waitingCount = waitingCount
    self.rememberedTokenCount = rememberedTokenCount
    self.ledgerLimits = ledgerLimits
    self.timing = timing
  }
}
