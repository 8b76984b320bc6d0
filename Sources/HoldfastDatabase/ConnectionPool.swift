import HoldfastLinux
import Synchronization

/// Whether a connection that nobody uses can be used again.
enum ConnectionFitness {
  case fit
  /// It is closed, and another one may be used.
  case unfit
  /// It is closed, and a new one is opened in its place.
  case replaceable
}

/// The connections to a database, each of which one thread uses at a time. They are opened when they are first needed.
final class ConnectionPool<Connection: Sendable>: Sendable {
  /// Has a count of the connections that could be taken now.
  private let free: WakeUp
  private let idle = Mutex<[Connection]>([])
  private let waitMilliseconds: Int
  private let fitness: @Sendable (Connection) -> ConnectionFitness
  private let open: @Sendable () throws(SQLFault) -> Connection

  /// Creates a pool without connections.
  ///
  /// - Parameters:
  ///   - count: The highest number of connections.
  ///   - waitMilliseconds: The longest wait for a free one.
  ///   - fitness: Whether a connection can be used again.
  ///   - open: Opens a connection.
  /// - Throws: `busy` if the process has no free descriptors.
  init(
    count: Int, waitMilliseconds: Int, fitness: @escaping @Sendable (Connection) -> ConnectionFitness = { _ in .fit },
    open: @escaping @Sendable () throws(SQLFault) -> Connection
  ) throws(SQLFault) {
    do throws(SystemError) { free = try WakeUp() } catch { throw .busy }
    self.waitMilliseconds = waitMilliseconds
    self.fitness = fitness
    self.open = open
    for _ in 0..<count { free.raise() }
  }

  /// Lends a connection to `body`, which returns whether it can be used again.
  func withConnection<Result>(
    _ body: (Connection) -> (result: Result, isUsable: Bool)
  ) throws(SQLFault) -> Result {
    try take()
    defer { free.raise() }
    let connection = if let known = usable() { known } else { try open() }
    let (result, isUsable) = body(connection)
    if isUsable { idle.withLock { $0.append(connection) } }
    return result
  }

  /// Closes the connections that nobody uses.
  func closeIdle() {
    let closed = idle.withLock { idle in
      defer { idle = [] }
      return idle
    }
    _ = closed
  }

  private func usable() -> Connection? {
    while let connection = idle.withLock({ $0.popLast() }) {
      switch fitness(connection) {
      case .fit: return connection
      case .unfit: continue
      case .replaceable: return nil
      }
    }
    return nil
  }

  private func take() throws(SQLFault) {
    let deadline = Deadline(afterMilliseconds: waitMilliseconds)
    while !free.lower() {
      guard free.wait(until: deadline) else { throw .busy }
    }
  }
}
