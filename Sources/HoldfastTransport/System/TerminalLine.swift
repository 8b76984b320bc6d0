import Glibc
import HoldfastLinux
import Synchronization

/// The state of a terminal connection in addition to its file: a terminal has no end that can be shut down, and no packets.
package final class TerminalLine: Sendable {
  /// The time for which the line must be silent after bytes that are not a message.
  let silenceMilliseconds: Int
  /// The signal that wakes a thread waiting for the line.
  let wake: WakeUp
  /// The signal that is raised when the connection is released, so that the listener can hand out the line again.
  let turn: WakeUp?
  /// The end of the silence that is being waited for; nil while messages are read.
  private let silence = Mutex<Deadline?>(nil)

  init(silenceMilliseconds: Int, turn: WakeUp? = nil) throws(TransportError) {
    self.silenceMilliseconds = silenceMilliseconds
    self.turn = turn
    wake = try makeWakeUp()
  }

  /// The end of a silence that begins now.
  var nextSilence: Deadline {
    Deadline(afterMilliseconds: silenceMilliseconds)
  }

  /// The end of the silence after which reading resumes; nil while messages are read.
  package var silenceDeadline: Deadline? {
    get { silence.withLock { $0 } }
    set { silence.withLock { $0 = newValue } }
  }

  /// Resumes reading if the silence has been long enough. The caller has just observed that no bytes arrived.
  func endSilence() {
    silence.withLock { if let deadline = $0, deadline.hasPassed { $0 = nil } }
  }
}

extension OpenFile {
  /// Opens the terminal at `path` exclusively: raw bytes, 8 bits, no parity, 115200 bits a second, no flow control.
  ///
  /// - Throws: ``TransportError/pathOccupied`` if it is not a terminal, ``TransportError/addressInUse`` if another Holdfast
  ///   process has it open.
  package static func terminal(path: String) throws(TransportError) -> OpenFile {
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
    // Waiting bytes are kept, because the device may already have sent its first message. The kernel echoes and edits the
    // bytes that reach a port before its first opening, as on a console; either end resynchronises at the next silence.
    try checked(unsafe tcsetattr(file.descriptor, TCSANOW, &settings))
    return file
  }
}
