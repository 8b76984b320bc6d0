import Glibc

extension Connection {
  /// Connects to a listener, or opens a terminal.
  ///
  /// - Parameters:
  ///   - endpoint: where the peer is.
  ///   - timeoutMilliseconds: how long a listener whose queue is full may hold this up.
  ///   - silenceMilliseconds: on a terminal, how long it must be silent after bytes that are no message.
  /// - Returns: the connection, on which nothing was sent yet.
  /// - Throws: ``TransportError/notFound``, ``TransportError/refused``, ``TransportError/permissionDenied``,
  ///   ``TransportError/pathOccupied``, ``TransportError/addressInUse`` (a terminal), ``TransportError/timedOutWaiting``,
  ///   and of Bluetooth ``TransportError/unsupported``, ``TransportError/noAdapter``, ``TransportError/adapterDown``,
  ///   ``TransportError/adapterBlocked``,
  ///   ``TransportError/unreachable``, ``TransportError/notAnnounced``, ``TransportError/notSecured``.
  public static func connect(
    to endpoint: Endpoint,
    timeoutMilliseconds: Int,
    silenceMilliseconds: Int = defaultSilenceMilliseconds
  ) throws(TransportError) -> Connection {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    switch endpoint.address {
    case .unix(let path):
      return try connect(toPath: path, framing: .packets, by: deadline)
    case .unixStream(let path):
      return try connect(toPath: path, framing: .stream, by: deadline)
    case .terminal(let path):
      let file = try OpenFile.terminal(path: path)
      return Connection(
        file: file, framing: .stream, terminal: try TerminalLine(silenceMilliseconds: silenceMilliseconds))
    case .bluetooth(let device, let port):
      return try connect(to: device, port, from: endpoint, by: deadline)
    }
  }

  private static func connect(
    toPath path: String, framing: Framing, by deadline: Deadline
  ) throws(TransportError) -> Connection {
    let file = try OpenFile.unixSocket(framing: framing)
    while true {
      switch file.connect(toPath: path) {
      case 0: return Connection(file: file, framing: framing)
      // The queue of the listener is full, which poll(2) cannot wait for.
      case EAGAIN:
        guard !deadline.hasPassed else { throw .timedOutWaiting }
        try pause(milliseconds: min(5, deadline.remainingMilliseconds))
      case let code: throw TransportError(errno: code)
      }
    }
  }
}
