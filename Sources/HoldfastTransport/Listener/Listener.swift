import Glibc

/// Waits for peers at an endpoint.
public final class Listener: Sendable {
  /// Where it listens.
  public let endpoint: Endpoint
  private let cancellation: Signal
  private let source: Source

  private enum Source: Sendable {
    case socket(OpenFile, SocketFile, Framing)
    /// The line, and the right to use it, which one connection can have at a time.
    case terminal(OpenFile, turn: Signal, silenceMilliseconds: Int)
  }

  /// Begins to listen.
  ///
  /// A socket file is made with mode 0600. One that nobody answers on is replaced; anything else in the way is left alone.
  /// - Parameters:
  ///   - endpoint: where to listen.
  ///   - backlog: how many peers may wait to be accepted.
  ///   - silenceMilliseconds: on a terminal, how long it must be silent after bytes that are no message.
  /// - Throws: ``TransportError/addressInUse``, ``TransportError/pathOccupied``, ``TransportError/permissionDenied``,
  ///   ``TransportError/notFound`` (no such folder or terminal), ``TransportError/unsupported``.
  public init(
    _ endpoint: Endpoint,
    backlog: Int = 128,
    silenceMilliseconds: Int = Connection.defaultSilenceMilliseconds
  ) throws(TransportError) {
    self.endpoint = endpoint
    cancellation = try Signal()
    switch endpoint.address {
    case .unix(let path):
      let (file, name) = try SocketFile.listen(atPath: path, framing: .packets, backlog: backlog)
      source = .socket(file, name, .packets)
    case .unixStream(let path):
      let (file, name) = try SocketFile.listen(atPath: path, framing: .stream, backlog: backlog)
      source = .socket(file, name, .stream)
    case .terminal(let path):
      let turn = try Signal()
      turn.raise()
      source = .terminal(try OpenFile.terminal(path: path), turn: turn, silenceMilliseconds: silenceMilliseconds)
    case .l2cap, .rfcomm, .lowEnergy:
      throw .unsupported
    }
  }

  deinit {
    close()
  }

  /// Waits for the next peer, for as long as it takes.
  ///
  /// A terminal has one peer: it is given out again once the connection before it is gone.
  /// - Returns: the connection with that peer.
  /// - Throws: ``TransportError/cancelled`` after ``cancel()`` or ``close()``, ``TransportError/closed`` where a terminal is
  ///   gone, ``TransportError/other(errno:)`` with `EMFILE` or `ENFILE` without free descriptors: the peer goes on waiting,
  ///   so let a connection end before the next try.
  public func accept() throws(TransportError) -> Connection {
    switch source {
    case .socket(let file, _, let framing):
      while true {
        try wait(for: file)
        if let peer = try file.acceptPeer() { return Connection(file: peer, framing: framing) }
      }
    case .terminal(let file, let turn, let silenceMilliseconds):
      repeat { try wait(for: turn.watched) } while !turn.lower()
      do throws(TransportError) {
        guard try !file.isHungUp() else { throw .closed }
        return Connection(
          file: file, framing: .stream,
          terminal: try TerminalLine(silenceMilliseconds: silenceMilliseconds, turn: turn))
      } catch {
        turn.raise()
        throw error
      }
    }
  }

  /// Ends every ``accept()``, now and later. From any thread, a signal handler included, any number of times.
  public func cancel() {
    cancellation.raise()
  }

  /// Stops listening: as ``cancel()``, sends away whoever waits, and removes the socket file if it is still the same one.
  public func close() {
    cancel()
    guard case .socket(let file, let name, _) = source else { return }
    name.remove()
    _ = shutdown(file.descriptor, CInt(SHUT_RDWR))
    while let peer = try? file.acceptPeer() { _ = peer }
  }

  private func wait(for file: OpenFile) throws(TransportError) {
    guard try file.wait(for: POLLIN, until: .never, unless: cancellation) == .ready else { throw .cancelled }
  }
}
