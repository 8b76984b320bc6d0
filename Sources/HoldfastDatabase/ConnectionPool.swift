import HoldfastLinux
import Synchronization

/// The connections to a database, each of which one thread uses at a time. They are opened when they are first needed.
final class ConnectionPool<Connection: Sendable>: Sendable {
  /// Has a count of the connections that could be taken now.
  private let free: WakeUp
  private let idle = Mutex<[Connection]>([])
  private let waitMilliseconds: Int
  private let isUsable: @Sendable (Connection) -> Bool
  private let open: @Sendable () throws(SQLFault) -> Connection

  /// Creates a pool without connections.
  ///
  /// - Parameters:
  ///   - count: The highest number of connections.
  ///   - waitMilliseconds: The longest wait for a free one.
  ///   - isUsable: Whether a connection can be used again; if not, it is closed.
  ///   - open: Opens a connection.
  /// - Throws: `busy` if the process has no free descriptors.
  init(
    count: Int, waitMilliseconds: Int, isUsable: @escaping @Sendable (Connection) -> Bool = { _ in true },
    open: @escaping @Sendable () throws(SQLFault) -> Connection
  ) throws(SQLFault) {
    do throws(SystemError) { free = try WakeUp() } catch { throw .busy }
    self.waitMilliseconds = waitMilliseconds
    self.isUsable = isUsable
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
      if isUsable(connection) { return connection }
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
