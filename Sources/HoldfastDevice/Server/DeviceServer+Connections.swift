import HoldfastCore
import HoldfastOpenSSL
import HoldfastTransport

extension DeviceServer {
  /// Gives a peer a place and a thread, or sends it away.
  func admit(_ connection: Connection) {
    guard gate.enter() else { return sendAway(connection) }
    guard let number = connections.add(connection, atMilliseconds: clock.monotonicMilliseconds()) else {
      gate.leave()
      return sendAway(connection)
    }
    let isStarted = startThread { [self] in
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
