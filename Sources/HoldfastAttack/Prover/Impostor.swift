import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization

/// An impostor device, which deceives each prover that connects in another way.
///
/// It knows the public id and key id of a device, and no secret. It judges only what provers send: whether a prover believed a
/// forged verdict, its exit status says.
package final class Impostor: Sendable {
  private let identity: Target
  private let deceptions: [Deception]
  private let timeoutMilliseconds: Int
  /// The random bytes of every M2, which must never repeat.
  private let seen = Mutex<Set<FixedBytes<16>>>([])

  /// Creates an impostor that poses as a device.
  package init(
    as device: DeviceID, keyID: KeyID, deceptions: [Deception], timeoutMilliseconds: Int
  ) {
    identity = Target(id: device, keyID: keyID)
    (self.deceptions, self.timeoutMilliseconds) = (deceptions, timeoutMilliseconds)
  }

  /// Serves provers until the listener is cancelled, or for so many connections.
  ///
  /// - Parameter report: is given each result, one at a time, on any thread.
  package func run(
    at listener: Listener, connections limit: Int?, report: @escaping @Sendable (DeceptionResult) -> Void
  ) throws(TransportError) {
    let served = WorkingCount()
    let lock = Mutex(())
    var count = 0
    defer { served.wait() }
    while count < limit ?? .max {
      let connection: Connection
      do throws(TransportError) { connection = try listener.accept() } catch {
        guard error == .cancelled || error == .closed else { throw error }
        return
      }
      let deception = deceptions[count % deceptions.count]
      count += 1
      served.begin()
      let isStarted = Thread.detach { [self] in
        let result = deceive(connection, deception)
        lock.withLock { _ in report(result) }
        served.end()
      }
      if !isStarted { served.end() }
    }
  }

  private func deceive(_ connection: Connection, _ deception: Deception) -> DeceptionResult {
    let stage = Stage(connection, posingAs: identity, timeoutMilliseconds: timeoutMilliseconds)
    var finding = deception.play(stage)
    let isRepeated = seen.withLock { seen in
      stage.randoms.reduce(false) { !seen.insert($1).inserted || $0 }
    }
    if isRepeated { finding = DeceptionFinding("an M2 with random bytes that it had used before", .unsound) }
    connection.linger(milliseconds: 1000)
    connection.shutdown()
    return DeceptionResult(deception: deception, observed: finding.observed, judgement: finding.judgement)
  }
}

/// A count of threads that work.
private final class WorkingCount: Sendable {
  private let state = Mutex(0)

  func begin() { state.withLock { $0 += 1 } }
  func end() { state.withLock { $0 -= 1 } }

  /// Waits until none works.
  func wait() {
    while state.withLock({ $0 > 0 }) { usleep(10_000) }
  }
}

/// The impostor's end of one connection.
final class Stage {
  private let connection: Connection
  private let identity: Target
  let timeoutMilliseconds: Int
  /// The last challenge that was sent.
  private var challenge: [UInt8] = []
  /// The random bytes of each M2.
  private(set) var randoms: [FixedBytes<16>] = []

  init(_ connection: Connection, posingAs identity: Target, timeoutMilliseconds: Int) {
    (self.connection, self.identity) = (connection, identity)
    self.timeoutMilliseconds = timeoutMilliseconds
  }

  /// Makes a challenge as the device does, or of another device or key.
  func makeChallenge(device: DeviceID? = nil, keyID: KeyID? = nil) -> [UInt8] {
    var random = SystemRandom()
    let nonce = (try? random.fixedBytes() as Nonce) ?? Nonce()
    var message: [UInt8] = []
    Challenge(
      deviceID: device ?? identity.id, nonce: nonce, keyID: keyID ?? identity.keyID, required: [],
      clock: SystemClock().unixSeconds()
    ).encode(into: &message)
    return message
  }

  /// Sends a message of 1 to 4096 bytes.
  @discardableResult
  func send(_ message: [UInt8]) -> Bool {
    if (try? Challenge(message.span)) != nil { challenge = message }
    return (try? connection.send(message.span, by: Deadline(afterMilliseconds: 2000))) != nil
  }

  /// Writes bytes as they are.
  func write(raw bytes: [UInt8]) { connection.write(raw: bytes) }

  /// Whether each message is one packet.
  var isPackets: Bool { connection.framing == .packets }

  /// Waits for a message of the prover. On a line, it begins anew when the prover asks for that.
  func receive(milliseconds: Int? = nil) -> Heard {
    let deadline = Deadline(afterMilliseconds: milliseconds ?? timeoutMilliseconds)
    while true {
      do throws(TransportError) {
        let bytes = try connection.receive(by: deadline, wholeWithin: deadline.remainingMilliseconds).bytes
        note(bytes)
        return .message(bytes)
      } catch {
        guard error == .emptyFrame, !challenge.isEmpty else { return Heard(error) }
        try? connection.sendEmptyFrame(by: deadline)
        send(challenge)
      }
    }
  }

  private func note(_ bytes: [UInt8]) {
    guard let message = try? ProofMessage(bytes.span), case .session(let head, _) = message.form else { return }
    var reader = CBORReader(head)
    if (try? reader.array(of: 3)) != nil, let random = try? reader.fixedBytes() as FixedBytes<16> {
      randoms.append(random)
    }
  }
}
