import HoldfastCore
import HoldfastOpenSSL
import HoldfastTransport

extension DeviceServer {
  /// Gives a peer a thread, or sends it away.
  func admit(_ connection: Connection) {
    guard gate.enter() else { return sendAway(connection) }
    let number = connectionCount.add(1, ordering: .relaxed).newValue
    let isStarted = startThread { [self] in
      defer { gate.leave() }
      serve(connection, number: number)
    }
    if !isStarted {
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
    ledger.unproved.add(.busy)
    ledger.recordUnproved(milliseconds: clock.monotonicMilliseconds(), realClock: clock.unixSeconds())
  }

  private func serve(_ connection: Connection, number: UInt64) {
    guard connections.add(connection, number: number) else { return }
    defer { connections.remove(number) }
    let key: P256PrivateKey
    do throws(CryptographyFailure) { key = try secrets.key() } catch {
      return notify(.fault(connection: number, .cryptography))
    }
    notify(.connected(connection: number))
    let policy = SessionPolicy()
    let session = DeviceSession(
      deviceID: folder.descriptor.deviceID, keyID: folder.descriptor.keyID, cryptography: OpenSSLCryptography(),
      key: key, store: SessionStore(ledger: ledger, memory: memory, clock: clock), policy: policy, random: random,
      clock: clock, challenges: secrets.challenges(bootCount: bootCount, connection: number))
    var loop = ConnectionLoop(
      connection: connection, number: number, timing: options.timing, clock: clock, watch: watch, stopFlag: stopFlag,
      notify: notify, policy: policy, session: session, actuator: LockActuator(lock))
    loop.run()
    notify(.disconnected(connection: number))
  }
}
