import HoldfastTransport
import Synchronization

/// The connections that are being served, so that a stop can end them.
final class ConnectionTable: Sendable {
  private let state = Mutex(State())

  private struct State {
    var connections: [UInt64: Connection] = [:]
    var isClosed = false
  }

  /// Takes a connection; false, and it is ended, when all are being ended.
  func add(_ connection: Connection, number: UInt64) -> Bool {
    state.withLock { state in
      guard !state.isClosed else { return false }
      state.connections[number] = connection
      return true
    }
  }

  func remove(_ number: UInt64) {
    state.withLock { $0.connections[number] = nil }
  }

  /// Ends every connection, now and later.
  func endAll() {
    state.withLock { state in
      state.isClosed = true
      for connection in state.connections.values { connection.shutdown() }
    }
  }
}
