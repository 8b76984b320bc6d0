import Glibc

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
