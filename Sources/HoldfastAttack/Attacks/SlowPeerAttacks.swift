import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization

/// Attacks of peers that send slowly.
extension Attack {
  static let slowPeers: [Attack] = [
    Attack(
      "dripping-peers", "Three peers send one byte at a time, again and again, and an honest prover comes.",
      due: "an honest round", .crowd
    ) { (adversary) throws(AttackFault) in
      guard let peers = DrippingPeers(at: adversary.endpoint) else { throw .notTried("no thread could be started") }
      _ = poll(nil, 0, 2 * DrippingPeers.intervalMilliseconds)
      let (isServed, reply) = adversary.isServed()
      let connectionCount = peers.end()
      guard connectionCount > 0 || !isServed else { throw .notTried("no slow peer could connect in time") }
      return Finding("an honest prover got \(reply)", isSound: isServed)
    },
    Attack(
      "dripped-message", "The last bytes of an honest M2 are sent one at a time, for 13 seconds, on a line for 20.",
      due: text(of: [.malformed]) + "; a line drops it", .stream
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      let message = try adversary.draft(on: line).message
      let frame = [UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
      let rest = frame.suffix(33)
      line.write(raw: Array(frame.dropLast(rest.count)))
      // A line would drop what came before a second of silence. The clock of an emulated board is slow.
      let pauseMilliseconds: CInt = adversary.isLine ? 600 : 400
      for byte in rest {
        _ = poll(nil, 0, pauseMilliseconds)
        line.write(raw: [byte])
      }
      return adversary.dropped(on: line)
    },
  ]
}

/// Peers that send one byte after the other until they are ended, and connect again whenever the device ends their connections.
private final class DrippingPeers: Sendable {
  /// The time between two bytes.
  static let intervalMilliseconds: CInt = 200
  private static let count = 3

  private let state: State
  private let thread: Thread

  private final class State: Sendable {
    /// Whether the peers have to leave.
    let isOver = Atomic(false)
    /// The number of connections so far.
    let connectionCount = Atomic(0)
  }

  init?(at endpoint: Endpoint) {
    let state = State()
    let thread = try? Thread {
      var connections = [Connection?](repeating: nil, count: Self.count)
      while !state.isOver.load(ordering: .relaxed) {
        for index in connections.indices { Self.drip(through: &connections[index], to: endpoint, state) }
        _ = poll(nil, 0, Self.intervalMilliseconds)
      }
    }
    guard let thread else { return nil }
    (self.state, self.thread) = (state, thread)
  }

  /// Ends all connections, and returns how many there were.
  func end() -> Int {
    state.isOver.store(true, ordering: .relaxed)
    thread.join()
    return state.connectionCount.load(ordering: .relaxed)
  }

  private static func drip(through connection: inout Connection?, to endpoint: Endpoint, _ state: State) {
    if connection?.isEnded(withinMilliseconds: 0) ?? true {
      connection = try? Connection.connect(to: endpoint, timeoutMilliseconds: 100)
      if connection != nil { state.connectionCount.add(1, ordering: .relaxed) }
      // The head of a frame of 600 bytes. A packet has none.
      if endpoint.scheme.framing != .packets { connection?.write(raw: [0x02, 0x58]) }
    }
    connection?.write(raw: [0x85])
  }
}
