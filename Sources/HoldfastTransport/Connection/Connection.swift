import CBlueZ
import Glibc
import HoldfastLinux
import Synchronization

/// Messages of 1 to 4096 bytes, exchanged with one peer.
///
/// One thread may send while another receives; two must not do the same at once. Only ``shutdown()`` may be called at any
/// time, by anybody.
package final class Connection: Sendable {
  /// The most bytes that a message can have.
  package static let maximumMessageByteCount = 4096
  /// How long a terminal must be silent, after bytes that are no message, before it is listened to again.
  package static let defaultSilenceMilliseconds = 1000

  /// How messages are told apart on this connection.
  package let framing: Framing
  let file: OpenFile
  let terminal: TerminalLine?
  /// What Bluetooth calls the peer's end; nil for another transport.
  let port: BluetoothPort?
  /// Whether this is a serial line, or a stream of bytes that stands in for one: empty frames have a meaning there.
  package var isSerial: Bool { framing == .stream && port == nil }
  let isShutDown = Atomic(false)
  /// Set once the place where the next message begins is lost, or must not be looked for.
  let hasReceivingEnded = Atomic(false)
  let hasSendingEnded = Atomic(false)

  init(file: OpenFile, framing: Framing, terminal: TerminalLine? = nil, port: BluetoothPort? = nil) {
    self.file = file
    self.framing = framing
    self.terminal = terminal
    self.port = port
  }

  /// Whether a peer came over Bluetooth Low Energy.
  package var isLowEnergy: Bool { port?.isLowEnergy == true }

  deinit {
    terminal?.turn?.raise()
  }

  /// Ends the connection and wakes whoever sends or receives on it, with ``TransportError/cancelled``.
  ///
  /// From any thread, any number of times. The descriptor stays open until the last owner lets this connection go.
  package func shutdown() {
    isShutDown.store(true, ordering: .sequentiallyConsistent)
    if let terminal {
      terminal.wake.raise()
    } else {
      _ = Glibc.shutdown(file.descriptor, CInt(SHUT_RDWR))
    }
  }

  /// Waits for `events` of poll(2).
  ///
  /// - Throws: ``TransportError/cancelled`` after ``shutdown()``, `timeout` after `deadline`.
  func wait(for events: CInt, until deadline: Deadline, orThrow timeout: TransportError) throws(TransportError) {
    let outcome = try file.wait(for: events, until: deadline, unless: terminal?.wake)
    guard !isShutDown.load(ordering: .sequentiallyConsistent) else { throw .cancelled }
    if outcome == .timedOut { throw timeout }
  }

  /// Lets `milliseconds` pass; says, at once, when ``shutdown()`` was called or the peer is gone meanwhile.
  package func isEnded(withinMilliseconds milliseconds: Int) -> Bool {
    do throws(TransportError) {
      // Of no event: poll(2) tells of the end all the same.
      try wait(for: 0, until: Deadline(afterMilliseconds: milliseconds), orThrow: .timedOutWaiting)
      return true
    } catch { return error != .timedOutWaiting }
  }

  /// Before this end goes: gives the peer `milliseconds` to read what was sent last and to go first.
  ///
  /// On Bluetooth alone, where the kernel drops what is still on its way when a channel is closed. At once elsewhere, where the
  /// peer is gone already, and after ``shutdown()``.
  package func linger(milliseconds: Int) {
    if port != nil { _ = isEnded(withinMilliseconds: milliseconds) }
  }

  /// The two ends of a new connection within this process.
  ///
  /// - Throws: ``TransportError/other(errno:)`` without free descriptors.
  package static func pair(framing: Framing = .packets) throws(TransportError) -> (Connection, Connection) {
    let (left, right) = try OpenFile.socketPair(framing: framing)
    return (Connection(file: left, framing: framing), Connection(file: right, framing: framing))
  }
}

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
  package static func connect(
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

/// What the kernel knows of the other end of a connection. It is for logs: it proves nothing.
package enum Peer: Sendable, Hashable {
  /// The process that connected to a socket in the file system, as it was then.
  case process(userID: UInt32, processID: Int32)
  /// A Bluetooth device, by the address that it used.
  case bluetooth(BluetoothAddress)
}

extension Connection {
  /// The peer of an accepted connection; nil for a serial line, and where the kernel does not say.
  ///
  /// Source: SO_PEERCRED of unix(7), getpeername(2).
  package var peer: Peer? {
    guard terminal == nil else { return nil }
    return switch port {
    case nil: file.peerProcess
    case .l2cap, .lowEnergy: file.peerName(sockaddr_l2()).map { .bluetooth(BluetoothAddress($0.l2_bdaddr)) }
    case .rfcomm: file.peerName(sockaddr_rc()).map { .bluetooth(BluetoothAddress($0.rc_bdaddr)) }
    }
  }
}

extension OpenFile {
  /// `struct ucred`: the ids of process, user and group, of 32 bits each.
  fileprivate var peerProcess: Peer? {
    var credentials: InlineArray<3, UInt32> = [0, 0, 0]
    let byteCount = socklen_t(MemoryLayout<InlineArray<3, UInt32>>.size)
    var actualByteCount = byteCount
    guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &actualByteCount) == 0,
      actualByteCount == byteCount
    else { return nil }
    return .process(userID: credentials[1], processID: Int32(bitPattern: credentials[0]))
  }

  /// What getpeername(2) writes over `name`; nil where it is of another kind.
  fileprivate func peerName<Name: BitwiseCopyable>(_ name: Name) -> Name? {
    var name = name
    var byteCount = socklen_t(MemoryLayout<Name>.size)
    let result = unsafe withUnsafeMutablePointer(to: &name) { name in
      unsafe name.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getpeername(descriptor, $0, &byteCount) }
    }
    return result == 0 && byteCount == socklen_t(MemoryLayout<Name>.size) ? name : nil
  }
}

extension Connection {
  /// What a wait for several connections waits for on one of them.
  package struct Watch {
    let connection: Connection
    let events: CInt

    /// Something to receive, the end of the connection included.
    package static func arrival(on connection: Connection) -> Watch { Watch(connection: connection, events: POLLIN) }

    /// The end of the connection alone, while what arrives is left for later.
    package static func end(of connection: Connection) -> Watch { Watch(connection: connection, events: 0) }

    /// The terminal, where the wait sees that it is silent.
    fileprivate var terminal: TerminalLine? { events == POLLIN ? connection.terminal : nil }

    /// When a silence that is waited for will be over.
    fileprivate var silence: Deadline { terminal?.silenceDeadline ?? .never }
  }

  /// Waits for the first of two things, or until one of the connections was shut down by ``shutdown()``.
  ///
  /// On a terminal that sent bytes that are no message, this is waiting for the silence too.
  ///
  /// - Returns: which of them happened; neither of them at `deadline`.
  /// - Throws: ``TransportError/other(errno:)``, where the system has no memory for it.
  package static func wait(
    for first: Watch, or second: Watch, until deadline: Deadline
  ) throws(TransportError) -> (first: Bool, second: Bool) {
    var entries: InlineArray<4, pollfd> = [
      first.connection.file.entry(for: first.events),
      first.connection.terminal?.wake.entry ?? none,
      second.connection.file.entry(for: second.events),
      second.connection.terminal?.wake.entry ?? none,
    ]
    repeat {
      if try poll(&entries, until: min(deadline, first.silence, second.silence)) { break }
      first.terminal?.endSilence()
      second.terminal?.endSilence()
    } while !deadline.hasPassed
    return (
      entries[0].revents | entries[1].revents != 0, entries[2].revents | entries[3].revents != 0
    )
  }

  /// poll(2) skips an entry with a negative descriptor.
  private static var none: pollfd { pollfd(fd: -1, events: 0, revents: 0) }
}

extension OpenFile {
  fileprivate func entry(for events: CInt) -> pollfd { pollfd(fd: descriptor, events: CShort(events), revents: 0) }
}

extension WakeUp {
  fileprivate var entry: pollfd { pollfd(fd: descriptor, events: CShort(POLLIN), revents: 0) }
}

/// How messages are told apart.
package enum Framing: Sendable, Hashable, CaseIterable {
  /// One message is one packet: `SOCK_SEQPACKET`.
  case packets
  /// A stream of bytes: a length of two bytes, big-endian, then the message.
  case stream
}
