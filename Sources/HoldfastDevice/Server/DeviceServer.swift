import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization

/// A server of an open device. One thread for each endpoint accepts peers, and each connection has a thread.
///
/// ``run()`` blocks; ``stop()`` ends it from any other thread. Each connection gets a copy of the actuator; what they share, the
/// actuator refers to.
public final class DeviceServer<
  Machine: Actuator & Sendable, Keys: DeviceKeys, Random: RandomSource & Sendable, Time: Clock & Sendable
>: Sendable {
  /// The device that is served.
  public let device: OpenDevice<Keys, Random, Time>
  private let actuator: Machine
  private let options: ServerOptions
  private let reception: AcceptLoop
  private let connections: ConnectionTable
  /// The gate that counts threads. The thread of an ended connection lives a moment longer than its place.
  private let gate: WorkerGate
  private let hasRun = Atomic(false)

  /// Begins to listen, and counts the start. Peers wait until ``run()``.
  ///
  /// - Parameters:
  ///   - device: the device, which the server closes when it ends. It has one server at a time.
  ///   - actuator: carries out accepted commands.
  ///   - endpoints: the addresses at which provers connect.
  ///   - listeners: sources of peers over other transports. There is at least one endpoint or listener, or the process ends.
  ///   - options: the limits of its load.
  /// - Throws: `alreadyServed` while the device has another server, which goes on; `endpoint`; `ledger`, also if the device is
  ///   closed; `noDescriptors`, also if fewer are allowed than its connections may need. After an error, the device can have
  ///   another server.
  public init(
    _ device: OpenDevice<Keys, Random, Time>, actuator: Machine, at endpoints: [Endpoint],
    listeners: [any ChannelListener] = [], options: ServerOptions = ServerOptions()
  ) throws(ServerFault) {
    // Each thread may need two, and the rest is a reserve: a flood of peers must not keep the policy from being read.
    let connectionCount = max(options.connectionCount, 0)
    guard connectionCount <= Int(CInt.max) / 8, DescriptorLimit.raise(to: 4 * connectionCount + 64),
      let gate = WorkerGate(limit: 2 * connectionCount)
    else {
      throw .noDescriptors
    }
    guard device.beginServing() else { throw .alreadyServed }
    do throws(ServerFault) {
      reception = try AcceptLoop(at: endpoints, waitingCount: options.waitingCount, and: listeners)
      do throws(LedgerError) { try device.start() } catch { throw .ledger(LedgerFault(error)) }
    } catch {
      device.endServing()
      throw error
    }
    (self.device, self.actuator, self.options, self.gate) = (device, actuator, options, gate)
    connections = ConnectionTable(
      limit: connectionCount, provingMilliseconds: options.timing.provingMilliseconds)
  }

  deinit { device.endServing() }

  /// The addresses at which provers connect. A Bluetooth port that was left open is filled in.
  public var endpoints: [Endpoint] { reception.endpoints }

  /// Serves until ``stop()``. Then it ends every connection, completes the ledger, and closes the device. A second call does
  /// nothing.
  ///
  /// - Throws: `endpoint` or `listener` if one is lost. Everything else is ended before that.
  public func run() throws(ServerFault) {
    guard !hasRun.exchange(true, ordering: .relaxed) else { return }
    _ = device.watch.policy(realClock: device.clock.unixSeconds())
    let recorder = startRecorder()
    reception.run(admit: { self.admit($0) }, report: { self.device.notify(.acceptFault($0)) })
    connections.endAll()
    gate.closeAndWait()
    recorder?.closeAndWait()
    device.close()
    device.endServing()
    if let fault = reception.fault { throw fault }
  }

  /// Returns the standing of a Bluetooth host's Low Energy connections. An ``Advertisement`` asks for it before it ends a
  /// link that keeps other hosts out.
  ///
  /// - Parameters:
  ///   - host: the address of the host's adapter.
  package func standing(of host: BluetoothAddress) -> LinkStanding {
    connections.standing(of: host, atMilliseconds: device.clock.monotonicMilliseconds())
  }

  /// Ends ``run()``. It may be called from any thread, any number of times, also before ``run()``.
  public func stop() {
    reception.stop()
  }

  /// Starts a thread that writes totals and counts once a minute, whether or not a peer connects. Returns nil if it cannot be
  /// started; then they are written only with rounds.
  private func startRecorder() -> WorkerGate? {
    guard let gate = WorkerGate(limit: 1), gate.enter() else { return nil }
    let isStarted = Thread.detach { [self] in
      defer { gate.leave() }
      while !reception.waitForStop(milliseconds: DeniedCounter.intervalMilliseconds) {
        device.recordTotals()
        device.ledger.dropCutEntries()
      }
    }
    return isStarted ? gate : nil
  }
}

extension DeviceServer {
  /// Gives a peer a place and a thread, or refuses it.
  private func admit(_ channel: any MessageChannel) {
    guard gate.enter() else { return sendAway(channel) }
    guard let number = connections.add(channel, atMilliseconds: device.clock.monotonicMilliseconds()) else {
      gate.leave()
      return sendAway(channel)
    }
    // Counted here, in the order in which the peers came.
    let session = device.nextSession()
    let isStarted = Thread.detach { [self] in
      defer { gate.leave() }
      serve(channel, number: number, session: session)
    }
    if !isStarted {
      _ = connections.remove(number)
      gate.leave()
      sendAway(channel)
    }
  }

  /// Answers `busy`. It must not delay the thread that accepts, so the answer is dropped if the channel does not take it at
  /// once.
  private func sendAway(_ channel: any MessageChannel) {
    var message = ByteBuffer<8>()
    do throws(EncodingFault) { try VerdictMessage.encode(unsealed: .busy, into: &message) } catch { return }
    device.notify(.busy)
    try? channel.send(message.bytes, by: Deadline(afterMilliseconds: 0))
    channel.shutdown()
    countBusy()
  }

  private func countBusy() {
    device.ledger.unproved.add(.busy)
    device.recordTotals()
  }

  private func serve(_ channel: any MessageChannel, number: UInt64, session sessionNumber: UInt64) {
    defer { release(number) }
    let session: VerifierSession<Machine, Keys, Random, Time>
    do throws(DeviceFault) {
      session = try device.session(
        sessionNumber, connection: number, transport: RoundTransport(of: channel), actuator: actuator)
    } catch { return device.notify(.fault(connection: number, error)) }
    device.notify(.connected(connection: number, channel.peer))
    var loop = ConnectionLoop(
      channel, timing: options.timing, place: (table: connections, number: number), session: session)
    loop.run()
  }

  private func release(_ number: UInt64) {
    if connections.remove(number) { return device.notify(.disconnected(connection: number)) }
    device.notify(.displaced(connection: number))
    countBusy()
  }
}

/// The timeouts of a server, in milliseconds; zero or less is no time. The defaults are those of docs/protocol.md where it has one.
public struct ServerTiming: Sendable {
  /// The timeout from M1 to the first byte of M2.
  public var answerMilliseconds = Limit.answer.linux
  /// The timeout from the first byte of M2 to its last.
  public var messageMilliseconds = Limit.wholeMessage.linux
  /// The timeout for a peer to take a message.
  public var sendMilliseconds = 10_000
  /// The longest delay of an answer to failed proofs.
  public var greatestDelayMilliseconds: UInt64 = 1000
  /// The time that a peer has to read the last message before its connection is closed, where closing could discard it.
  public var farewellMilliseconds = 1000
  /// The time that a new peer has to prove itself before a newcomer may take its place.
  public var provingMilliseconds: UInt64 = 2000

  /// Creates the default timeouts.
  public init() {}
}

/// The limits of a server's load. The defaults are the limits for a host in docs/protocol.md, Limits.
public struct ServerOptions: Sendable {
  /// The most connections that are served at once. If all places are taken, a new peer gets that of one that has not proved
  /// itself in time, or else is answered with `busy`. With none or fewer, every peer is.
  public var connectionCount = Limit.connections.linux
  /// The most peers that may wait to be accepted; the system bounds it.
  public var waitingCount = Limit.waitingPeers.linux
  /// The timeouts.
  public var timing = ServerTiming()

  /// Creates the default limits.
  public init() {}
}
