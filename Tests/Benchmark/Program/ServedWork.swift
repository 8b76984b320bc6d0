import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization
import TestSupport

/// A number of provers that ask a served device at once, each on its connection and with its token. A repetition is one remembered
/// round of each of them. To connect, and the round after that, are not timed.
///
/// The folder has `served`, the device's id and the public point of its key. The device is served at `served.socket`, and trusts the
/// issuer of the tokens.
final class ServedWork {
  /// One thread at a time uses it.
  private final class Peer: @unchecked Sendable {
    private let prover: TestProver
    private let connection: Connection
    private static let patienceMilliseconds = 60_000

    init(_ prover: TestProver, at endpoint: Endpoint) throws {
      self.prover = prover
      connection = try Connection.connect(to: endpoint, timeoutMilliseconds: Self.patienceMilliseconds)
    }

    /// A round, which the device must accept.
    func round(_ flaws: Flaws) throws {
      let answer = try prover.answer(try receive(), command: "status", flaws: flaws)
      try connection.send(answer.message.span, timeoutMilliseconds: Self.patienceMilliseconds)
      guard try prover.open(try receive(), after: answer).status == .accepted else { throw RoundDenied() }
    }

    private func receive() throws -> [UInt8] {
      var buffer = [UInt8](repeating: 0, count: 4096)
      var span = buffer.mutableSpan
      let count = try connection.receive(
        into: &span, firstByteWithin: Self.patienceMilliseconds, wholeWithin: Self.patienceMilliseconds)
      return Array(buffer[..<count])
    }
  }

  private let endpoint: Endpoint
  private let provers: [(claims: TestClaims, token: [UInt8])]
  private var isKnown = false

  init(_ inputs: Inputs, proverCount: Int) throws {
    endpoint = try Endpoint(parsing: "unix:\(inputs.folder)/served.socket")
    let served = try readFile(inputs.folder + "/served")
    let issuer = try Inputs.issuerKey()
    let now = SystemClock().unixSeconds() ?? 0
    provers = try (0..<proverCount).map { number in
      var claims = TestClaims(for: fixed(Array(served[..<16])))
      (claims.issuedAt, claims.expires) = (now, now + 86_400)
      claims.tokenID = TokenID(filledWith: UInt8(number))
      return (claims, try issuer.token(claims, to: fixed(Array(served[16...]))))
    }
  }

  /// Connects, and runs the first round. The device may still have the places of the connections before, which have just ended.
  private static func peer(_ prover: TestProver, at endpoint: Endpoint, _ flaws: Flaws) throws -> Peer {
    for _ in 0..<200 {
      do {
        let peer = try Peer(prover, at: endpoint)
        try peer.round(flaws)
        return peer
      } catch { usleep(5000) }
    }
    throw RoundDenied()
  }

  /// Lets each prover run that many rounds, all at once, and times them.
  func perform(_ count: Int) throws -> Timing {
    let flaws: Flaws = isKnown ? .asReference : []
    isKnown = true
    let peers = Mutex<[Peer]>([])
    let unconnected = try failures(of: provers) { [endpoint] (claims, token) in
      let peer = try Self.peer(TestProver(claims, token: token), at: endpoint, flaws)
      peers.withLock { $0.append(peer) }
    }
    return try timed {
      try unconnected + failures(of: peers.withLock { $0 }) { peer in for _ in 0..<count { try peer.round(flaws) } }
    }
  }
}

/// Runs `body` with each element, each on a thread of its own, and returns how many threw.
private func failures<Element: Sendable>(
  of elements: [Element], _ body: @escaping @Sendable (Element) throws -> Void
) throws -> Int {
  let count = Mutex(0)
  let threads = try elements.map { element in
    try Thread { do { try body(element) } catch { count.withLock { $0 += 1 } } }
  }
  for thread in threads { thread.join() }
  return count.withLock { $0 }
}
