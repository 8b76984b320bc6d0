import Glibc
import HoldfastCore
import HoldfastOpenSSL

/// Asks a person at the terminal for a secret, which is not shown while it is typed.
enum Prompt {
  /// One line of at most `limit` bytes. Ctrl-C, Ctrl-D and Ctrl-\ give up.
  static func secret(_ prompt: String, limit: Int) throws(Failure) -> SecretBytes {
    let terminal = unsafe open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
    guard terminal >= 0 else {
      throw Failure(.usage, "there is no terminal to ask at", hint: "give a file, or - and a pipe")
    }
    defer { close(terminal) }
    var before = termios()
    guard unsafe tcgetattr(terminal, &before) == 0 else { throw Failure(.unavailable, "the terminal cannot be used") }
    var quiet = before
    // Without signals from its keys, nothing can end this process before the terminal is as it was.
    quiet.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
    _ = unsafe tcsetattr(terminal, TCSAFLUSH, &quiet)
    defer { _ = unsafe tcsetattr(terminal, TCSAFLUSH, &before) }
    _ = Console.write(Array(prompt.utf8)[...], to: terminal)
    defer { _ = Console.write([0x0a], to: terminal) }
    return try line(from: terminal, limit: limit)
  }

  private static func line(from terminal: Int32, limit: Int) throws(Failure) -> SecretBytes {
    var typed = ByteBuffer<1024>()
    while true {
      var byte: UInt8 = 0
      let count = unsafe read(terminal, &byte, 1)
      if count < 0 && errno == EINTR { continue }
      guard count == 1, byte != 3, byte != 4, byte != 28 else { throw Failure(.usage, "given up") }
      switch byte {
      case 0x0a, 0x0d: return SecretBytes(copying: typed.bytes)
      case 0x08, 0x7f: if typed.count > 0 { typed.truncate(to: typed.count - 1) }
      case 0x15: typed.removeAll()
      default:
        guard typed.count < limit else { throw Failure(.malformed, "that is longer than it may be") }
        do throws(EncodingFault) { try typed.append(byte) } catch { throw Failure(.malformed, "that is too long") }
      }
    }
  }
}
