import CBlueZ
import Glibc
import HoldfastLinux
import Synchronization

/// A listener that accepts peers at an endpoint.
public final class Listener: Sendable {
  /// The endpoint at which it listens. An open Bluetooth port is filled in.
  public let endpoint: Endpoint
  private let cancellation: WakeUp
  private let source: Source

  private enum Source: Sendable {
    /// A listening socket, with its name if that is in the file system, and its port if it is a Bluetooth socket.
    case socket(OpenFile, SocketFile?, BluetoothPort?)
    /// A socket that a service manager also has, and listens at when this process does not.
    case passed(PassedSocket)
    /// The line, and the right to use it, which only one connection can hold at a time.
    case terminal(OpenFile, turn: WakeUp, silenceMilliseconds: Int)
  }

  /// The earliest time at which a terminal is handed out again. A caller that cannot serve it releases it at once, and must not keep
  /// a processor busy with that.
  private let nextTurn = Mutex(Deadline(afterMilliseconds: 0))
  private static let turnMilliseconds = 100

  /// Begins to listen.
  ///
  /// A socket file is created with mode 0600, and gets the mode and the group of the endpoint before any peer can connect. A
  /// stale socket file, at which no listener answers, is replaced; any other file at the path is left unchanged.
  ///
  /// A Bluetooth endpoint that names no security requires `security=medium`: the kernel accepts no peer whose link is
  /// not encrypted.
  /// - Parameters:
  ///   - endpoint: the endpoint at which to listen.
  ///   - backlog: the maximum number of peers that wait to be accepted; a negative number, or one above the system's bound, is
  ///     that bound.
  ///   - silenceMilliseconds: the time for which a terminal must be silent after bytes that are not a message.
  /// - Throws: ``TransportError/addressInUse``, ``TransportError/pathOccupied``, ``TransportError/permissionDenied``,
  ///   ``TransportError/notFound`` (no such folder or terminal), ``TransportError/unknownGroup``,
  ///   ``TransportError/groupNotAllowed``; for Bluetooth ``TransportError/unsupported``, ``TransportError/noAdapter``,
  ///   ``TransportError/adapterDown``, ``TransportError/adapterBlocked``.
  public init(
    _ endpoint: Endpoint,
    backlog: Int = 128,
    silenceMilliseconds: Int = Connection.defaultSilenceMilliseconds
  ) throws(TransportError) {
    cancellation = try makeWakeUp()
    var actual = endpoint
    switch endpoint.address {
    case .socket(let path):
      let (file, name) = try SocketFile.listen(
        atPath: path, framing: endpoint.scheme.framing, backlog: backlog, access: endpoint.access)
      source = .socket(file, name, nil)
    case .terminal(let path):
      let turn = try makeWakeUp()
      turn.raise()
      source = .terminal(try OpenFile.terminal(path: path), turn: turn, silenceMilliseconds: silenceMilliseconds)
    case .bluetooth(let address, let port):
      let (file, port) = try OpenFile.listen(
        at: address, port, adapter: endpoint.adapter, security: endpoint.security ?? .medium, backlog: backlog)
      source = .socket(file, nil, port)
      actual = Endpoint(address, port, adapter: endpoint.adapter, security: endpoint.security)
    }
    self.endpoint = actual
  }

  /// Listens at a socket that a service manager has made, which an endpoint names.
  ///
  /// - Throws: ``TransportError/other(errno:)`` if no descriptors are free.
  package init(_ socket: PassedSocket, at endpoint: Endpoint) throws(TransportError) {
    cancellation = try makeWakeUp()
    source = .passed(socket)
    self.endpoint = endpoint
  }

  deinit {
    close()
  }

  /// Waits for the next peer, without a time limit.
  ///
  /// Several threads may wait at once; each peer goes to one of them. A terminal has only one peer: it is available again when the
  /// previous connection has been released, but at most ten times a second.
  /// - Returns: the connection with that peer.
  /// - Throws: ``TransportError/cancelled`` after ``cancel()`` or ``close()``, ``TransportError/closed`` if the terminal has
  ///   been disconnected, ``TransportError/other(errno:)`` with `EMFILE` or `ENFILE` if no descriptors are free. In the last
  ///   case the peer continues to wait: release a connection before the next call.
  public func accept() throws(TransportError) -> Connection {
    switch source {
    case .socket(let file, _, let port):
      return Connection(file: try nextPeer(of: file), scheme: endpoint.scheme, port: port)
    case .passed(let socket):
      return Connection(file: try nextPeer(of: socket.file), scheme: endpoint.scheme, port: nil)
    case .terminal(let file, let turn, let silenceMilliseconds):
      repeat { try wait(for: turn.descriptor) } while !turn.lower()
      do throws(TransportError) {
        if cancellation.wait(until: nextTurn.withLock { $0 }) { throw .cancelled }
        nextTurn.withLock { $0 = Deadline(afterMilliseconds: Self.turnMilliseconds) }
        guard try !file.isHungUp() else { throw .closed }
        return Connection(
          file: file, scheme: endpoint.scheme,
          terminal: try TerminalLine(silenceMilliseconds: silenceMilliseconds, turn: turn))
      } catch {
        turn.raise()
        throw error
      }
    }
  }

  /// Ends every current and future ``accept()``.
  ///
  /// It may be called from any thread, including a signal handler, any number of times.
  public func cancel() {
    cancellation.raise()
  }

  /// Stops listening. It cancels as ``cancel()`` does, disconnects waiting peers, and removes the socket file if it is unchanged.
  ///
  /// A socket that a service manager passed goes on to exist there, and peers wait for the next process.
  public func close() {
    cancel()
    switch source {
    case .socket(let file, let name, _):
      name?.remove()
      sendAway(from: file)
    case .terminal, .passed: break
    }
  }

  private func sendAway(from file: OpenFile) {
    _ = shutdown(file.descriptor, CInt(SHUT_RDWR))
    while let peer = try? file.acceptPeer() { _ = peer }
  }

  private func nextPeer(of file: OpenFile) throws(TransportError) -> OpenFile {
    while true {
      try wait(for: file.descriptor)
      if let peer = try file.acceptPeer() { return peer }
    }
  }

  private func wait(for descriptor: CInt) throws(TransportError) {
    guard try poll(descriptor, for: POLLIN, until: .never, unless: cancellation) == .ready else { throw .cancelled }
  }
}
