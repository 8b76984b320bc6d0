import Glibc
import HoldfastLinux
import Synchronization

/// What a connection on a terminal needs besides the file: a terminal has no end that can be shut, and no packets.
final class TerminalLine: Sendable {
  /// How long the line must be silent after bytes that are no message.
  let silenceMilliseconds: Int
  /// Wakes whoever waits for the line.
  let wake: WakeUp
  /// Raised when the connection is gone, so that the listener can give the line to the next.
  let turn: WakeUp?
  /// When the silence that is waited for will be over; nil while messages are read.
  private let silence = Mutex<Deadline?>(nil)

  init(silenceMilliseconds: Int, turn: WakeUp? = nil) throws(TransportError) {
    self.silenceMilliseconds = silenceMilliseconds
    self.turn = turn
    wake = try makeWakeUp()
  }

  /// The moment at which a silence that begins now is long enough.
  var nextSilence: Deadline {
    Deadline(afterMilliseconds: silenceMilliseconds)
  }

  /// When bytes will be listened to again; nil where they are now.
  var silenceDeadline: Deadline? {
    get { silence.withLock { $0 } }
    set { silence.withLock { $0 = newValue } }
  }

  /// Listens to bytes again where the silence has been long enough. For whoever has just seen that nothing came.
  func endSilence() {
    silence.withLock { if let deadline = $0, deadline.hasPassed { $0 = nil } }
  }
}

extension OpenFile {
  /// Opens the terminal at `path` for itself alone: raw bytes, 8 bits, no parity, 115200 bits a second, no flow control.
  ///
  /// - Throws: ``TransportError/pathOccupied`` where it is no terminal, ``TransportError/addressInUse`` where another
  ///   Holdfast has it open.
  static func terminal(path: String) throws(TransportError) -> OpenFile {
    let file = OpenFile(taking: try checked(unsafe open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)))
    guard isatty(file.descriptor) == 1 else { throw .pathOccupied }
    guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else { throw .addressInUse }
    var settings = termios()
    try checked(unsafe tcgetattr(file.descriptor, &settings))
    unsafe cfmakeraw(&settings)
    settings.c_cflag &= ~tcflag_t(CSTOPB) & ~tcflag_t(CRTSCTS)
    settings.c_iflag &= ~tcflag_t(IXOFF)
    settings.c_cflag |= tcflag_t(CLOCAL) | tcflag_t(CREAD)
    try checked(unsafe cfsetspeed(&settings, speed_t(B115200)))
    // Bytes that are waiting stay: a device that speaks first may have spoken already. What came to a port that nobody had opened
    // before was echoed and edited, as for a person: either end finds its place again at the next silence.
    try checked(unsafe tcsetattr(file.descriptor, TCSANOW, &settings))
    return file
  }
}
