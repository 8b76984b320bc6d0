import CBlueZ
import Glibc
import Synchronization

/// Messages of 1 to 4096 bytes, exchanged with one peer.
///
/// One thread may send while another receives; two must not do the same at once. Only ``shutdown()`` may be called at any
/// time, by anybody.
public final class Connection: Sendable {
  /// The most bytes that a message can have.
  public static let maximumMessageByteCount = 4096
  /// How long a terminal must be silent, after bytes that are no message, before it is listened to again.
  public static let defaultSilenceMilliseconds = 1000

  /// How messages are told apart on this connection.
  public let framing: Framing
  let file: OpenFile
  let terminal: TerminalLine?
  /// What Bluetooth calls the peer's end; nil for another transport.
  let port: BluetoothPort?
  /// Whether this is a serial line, or a stream of bytes that stands in for one: empty frames have a meaning there.
  public var isSerial: Bool { framing == .stream && port == nil }
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
  public var isLowEnergy: Bool { port?.isLowEnergy == true }

  deinit {
    terminal?.turn?.raise()
  }

  /// Ends the connection and wakes whoever sends or receives on it, with ``TransportError/cancelled``.
  ///
  /// From any thread, any number of times. The descriptor stays open until the last owner lets this connection go.
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

  /// Lets `milliseconds` pass; says, at once, when ``shutdown()`` was called or the peer is gone meanwhile.
  public func isEnded(withinMilliseconds milliseconds: Int) -> Bool {
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
  public func linger(milliseconds: Int) {
    if port != nil { _ = isEnded(withinMilliseconds: milliseconds) }
  }

  /// The two ends of a new connection within this process.
  ///
  /// - Throws: ``TransportError/other(errno:)`` without free descriptors.
  public static func pair(framing: Framing = .packets) throws(TransportError) -> (Connection, Connection) {
    let (left, right) = try OpenFile.socketPair(framing: framing)
    return (Connection(file: left, framing: framing), Connection(file: right, framing: framing))
  }
}
