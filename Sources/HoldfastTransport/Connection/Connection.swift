import CBlueZ
import Glibc
import HoldfastCore
import HoldfastLinux
import Synchronization

/// A connection to one peer, which carries messages of 1 to 4096 bytes.
///
/// One thread may send while another receives, but only one thread at a time may send, and only one may receive.
/// ``shutdown()`` may be called at any time and from any thread.
public final class Connection: Sendable {
  /// The maximum byte count of a message.
  public static let maximumMessageByteCount = Limit.message.linux
  /// The default time for which a terminal must be silent, after bytes that are not a message, before reading resumes.
  public static let defaultSilenceMilliseconds = Limit.silence.linux

  package let scheme: Scheme
  package let file: OpenFile
  package let terminal: TerminalLine?
  /// The peer's Bluetooth port; nil for another transport.
  let port: BluetoothPort?
  let isShutDown = Atomic(false)
  /// Whether receiving has ended: the start of the next message is unknown, or must not be searched for.
  let hasReceivingEnded = Atomic(false)
  let hasSendingEnded = Atomic(false)

  package init(file: OpenFile, scheme: Scheme, terminal: TerminalLine? = nil, port: BluetoothPort? = nil) {
    self.file = file
    self.scheme = scheme
    self.terminal = terminal
    self.port = port
  }

  /// The method that separates messages on this connection.
  package var framing: Framing { scheme.framing }

  /// Whether this is a serial line, or a stream socket that replaces one. Only there do empty frames have a meaning.
  package var isSerial: Bool { scheme.isSerial }

  /// Whether the peer is connected over Bluetooth Low Energy.
  package var isLowEnergy: Bool { scheme.radio == .lowEnergy }

  deinit {
    terminal?.turn?.raise()
  }

  /// Ends the connection. A thread that is sending or receiving on it wakes with ``TransportError/cancelled``.
  ///
  /// It may be called from any thread, any number of times. The descriptor stays open until the last owner releases this object.
  public func shutdown() {
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

  /// Whether bytes wait to be read, or the peer has ended the connection.
  package var hasArrived: Bool {
    (try? file.wait(for: POLLIN, until: Deadline(afterMilliseconds: 0), unless: nil)) == .ready
  }

  /// Returns whether the connection ends within `milliseconds`, by ``shutdown()`` or because the peer ends it.
  ///
  /// It returns at once when the connection ends, otherwise after `milliseconds`; a time of zero or less is no wait.
  public func isEnded(withinMilliseconds milliseconds: Int) -> Bool {
    do throws(TransportError) {
      // The event mask is empty, because poll(2) reports the end in any case.
      try wait(for: 0, until: Deadline(afterMilliseconds: milliseconds), orThrow: .timedOutWaiting)
      return true
    } catch { return error != .timedOutWaiting }
  }

  /// Waits up to `milliseconds` for the peer to read the last message and to end the connection first.
  ///
  /// It waits only on Bluetooth, where the kernel drops bytes in transit when a channel is closed. It returns at once on other
  /// transports, if the peer has already ended the connection, and after ``shutdown()``.
  public func linger(milliseconds: Int) {
    if port != nil { _ = isEnded(withinMilliseconds: milliseconds) }
  }

  /// Creates the two ends of a new connection within this process, as of ``Scheme/unix`` or ``Scheme/unixStream``.
  ///
  /// - Throws: ``TransportError/other(errno:)`` if no descriptors are free.
  package static func pair(framing: Framing = .packets) throws(TransportError) -> (Connection, Connection) {
    let (left, right) = try OpenFile.socketPair(framing: framing)
    let scheme = framing == .packets ? Scheme.unix : .unixStream
    return (Connection(file: left, scheme: scheme), Connection(file: right, scheme: scheme))
  }
}

extension Connection {
  /// Connects to a listener, or opens a terminal.
  ///
  /// - Parameters:
  ///   - endpoint: the peer's endpoint.
  ///   - timeoutMilliseconds: the maximum time for making the connection, for example to a listener whose queue is full; zero or
  ///     less for one attempt, over Bluetooth for none (``TransportError/timedOutWaiting``). A time beyond the range of the clock
  ///     is no limit.
  ///   - silenceMilliseconds: the time for which a terminal must be silent after bytes that are not a message.
  /// - Returns: the connection, on which nothing has been sent yet.
  /// - Throws: ``TransportError/notFound``, ``TransportError/refused``, ``TransportError/permissionDenied``,
  ///   ``TransportError/pathOccupied``, ``TransportError/addressInUse`` (a terminal), ``TransportError/timedOutWaiting``,
  ///   and for Bluetooth ``TransportError/unsupported``, ``TransportError/noAdapter``, ``TransportError/adapterDown``,
  ///   ``TransportError/adapterBlocked``,
  ///   ``TransportError/unreachable``, ``TransportError/notAnnounced``, ``TransportError/notSecured``.
  public static func connect(
    to endpoint: Endpoint,
    timeoutMilliseconds: Int,
    silenceMilliseconds: Int = defaultSilenceMilliseconds
  ) throws(TransportError) -> Connection {
    try connect(
      to: endpoint, timeoutMilliseconds: timeoutMilliseconds, silenceMilliseconds: silenceMilliseconds, unless: nil)
  }

  /// The same, unless `wakeUp` is raised first.
  ///
  /// - Throws: also ``TransportError/cancelled``.
  package static func connect(
    to endpoint: Endpoint, timeoutMilliseconds: Int, silenceMilliseconds: Int = defaultSilenceMilliseconds,
    unless wakeUp: WakeUp?
  ) throws(TransportError) -> Connection {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    switch endpoint.address {
    case .socket(let path):
      return try connect(toPath: path, endpoint.scheme, by: deadline, unless: wakeUp)
    case .terminal(let path):
      let file = try OpenFile.terminal(path: path)
      return Connection(
        file: file, scheme: endpoint.scheme, terminal: try TerminalLine(silenceMilliseconds: silenceMilliseconds))
    case .bluetooth(let device, let port):
      return try connect(to: device, port, from: endpoint, by: deadline, unless: wakeUp)
    }
  }

  private static func connect(
    toPath path: String, _ scheme: Scheme, by deadline: Deadline, unless wakeUp: WakeUp?
  ) throws(TransportError) -> Connection {
    let file = try OpenFile.unixSocket(framing: scheme.framing)
    while true {
      switch file.connect(toPath: path) {
      case 0: return Connection(file: file, scheme: scheme)
      // The listener's queue is full. poll(2) cannot wait for a place in it.
      case EAGAIN:
        guard !deadline.hasPassed else { throw .timedOutWaiting }
        try pause(milliseconds: min(5, deadline.remainingMilliseconds), unless: wakeUp)
      case let code: throw TransportError(errno: code)
      }
    }
  }
}

/// The kernel's information about the other end of a connection. It is for logs only: it proves nothing.
public enum Peer: Sendable, Hashable {
  /// The process that connected to a socket in the file system, with its ids at that time.
  case process(userID: UInt32, processID: Int32)
  /// A Bluetooth peer, named by the address that it used.
  case bluetooth(BluetoothAddress)
}

extension Connection {
  /// The peer of an accepted connection; nil for a serial line, or if the kernel does not report one.
  ///
  /// Source: SO_PEERCRED of unix(7), getpeername(2).
  public var peer: Peer? {
    guard terminal == nil else { return nil }
    return switch port {
    case nil: file.peerProcess
    case .l2cap, .lowEnergy: file.peerName(sockaddr_l2()).map { .bluetooth(BluetoothAddress($0.l2_bdaddr)) }
    case .rfcomm: file.peerName(sockaddr_rc()).map { .bluetooth(BluetoothAddress($0.rc_bdaddr)) }
    }
  }
}

extension OpenFile {
  /// The process at the other end, from a `struct ucred`: the ids of process, user and group, of 32 bits each.
  fileprivate var peerProcess: Peer? {
    var credentials: InlineArray<3, UInt32> = [0, 0, 0]
    let byteCount = socklen_t(MemoryLayout<InlineArray<3, UInt32>>.size)
    var actualByteCount = byteCount
    guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &actualByteCount) == 0,
      actualByteCount == byteCount
    else { return nil }
    return .process(userID: credentials[1], processID: Int32(bitPattern: credentials[0]))
  }

  /// Returns the name that getpeername(2) writes over `name`; nil if it has another size.
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
  /// A condition to wait for on one of several connections.
  package struct Watch {
    let connection: Connection
    let events: CInt

    /// Returns the condition that a message, or the end of the connection, can be received.
    package static func arrival(on connection: Connection) -> Watch { Watch(connection: connection, events: POLLIN) }

    /// Returns the condition that the connection has ended; incoming bytes remain unread.
    package static func end(of connection: Connection) -> Watch { Watch(connection: connection, events: 0) }

    /// The terminal whose silence this wait observes.
    fileprivate var terminal: TerminalLine? { events == POLLIN ? connection.terminal : nil }

    /// The end of the silence that is being waited for.
    fileprivate var silence: Deadline { terminal?.silenceDeadline ?? .never }
  }

  /// Waits for the first of two conditions, or until one of the connections is shut down by ``shutdown()``.
  ///
  /// On a terminal that has sent bytes that are not a message, this also waits for the silence.
  ///
  /// - Returns: the conditions that are met; neither of them if `deadline` has passed.
  /// - Throws: ``TransportError/other(errno:)`` if the system has no memory for the wait.
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

  /// An entry that poll(2) skips, because its descriptor is negative.
  private static var none: pollfd { pollfd(fd: -1, events: 0, revents: 0) }
}

extension OpenFile {
  fileprivate func entry(for events: CInt) -> pollfd { pollfd(fd: descriptor, events: CShort(events), revents: 0) }
}

extension WakeUp {
  fileprivate var entry: pollfd { pollfd(fd: descriptor, events: CShort(POLLIN), revents: 0) }
}
