import Glibc

/// A reason why a connection could not be made, or a message could not be sent or received.
public enum TransportError: Error, Equatable, Sendable {
  /// The peer ended the connection between two messages, or an earlier error has already ended this direction of it.
  case closed
  /// The deadline passed before the first byte of a message, or before a connection was made.
  case timedOutWaiting
  /// The deadline passed while a message was being received.
  case timedOutReading
  /// The deadline passed before the operating system accepted the whole message.
  case timedOutSending
  /// The message has more than 4096 bytes.
  case tooLong
  /// The message is longer than the packets that the peer accepts.
  case overPeerLimit
  /// The peer ended the connection in the middle of a message, or a message has no bytes.
  case truncated
  /// An empty frame arrived on a serial line: the other end restarts the round. The connection remains usable.
  case emptyFrame
  /// The operating system refuses access to this user.
  case permissionDenied
  /// There is no such file, folder or device node.
  case notFound
  /// No listener is at the endpoint.
  case refused
  /// Another listener already uses the endpoint, or another process uses the terminal.
  case addressInUse
  /// The file at the path has another kind: not a socket, not a terminal, or a socket with the other framing.
  case pathOccupied
  /// ``Listener/cancel()``, ``Listener/close()`` or ``Connection/shutdown()`` was called on this end.
  case cancelled
  /// The system has no Bluetooth, or not this Bluetooth protocol.
  case unsupported
  /// There is no such Bluetooth adapter.
  case noAdapter
  /// The Bluetooth adapter is powered off.
  case adapterDown
  /// The Bluetooth adapter is blocked by rfkill.
  case adapterBlocked
  /// The peer is not in range, or does not accept connections.
  case unreachable
  /// The radio link was lost.
  case linkLost
  /// The peer's SDP records do not announce such a port.
  case notAnnounced
  /// There is no group with that name.
  case unknownGroup
  /// This user may not assign a file to that group.
  case groupNotAllowed
  /// The link did not reach the required security: one end refused pairing or encryption.
  case notSecured
  /// The operating system reported another error.
  case other(errno: CInt)

  /// Maps `code`, a value of `errno`, to an error.
  package init(errno code: CInt) {
    self =
      switch code {
      case EPIPE, ECONNRESET, ENOTCONN, EIO: .closed
      case EACCES, EPERM, EROFS: .permissionDenied
      case ENOENT, ENOTDIR, ENXIO, ENODEV: .notFound
      case ECONNREFUSED: .refused
      case EADDRINUSE, EBUSY: .addressInUse
      case EPROTOTYPE, ENOTTY, EISDIR, ENOTSOCK: .pathOccupied
      case EMSGSIZE: .overPeerLimit
      case EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT: .unsupported
      case EADDRNOTAVAIL, EHOSTUNREACH: .noAdapter
      case ENETDOWN: .adapterDown
      case ERFKILL: .adapterBlocked
      case EHOSTDOWN: .unreachable
      case ETIMEDOUT, ECONNABORTED: .linkLost
      default: .other(errno: code)
      }
  }
}

extension TransportError {
  /// Maps `code`, the value of `errno` after a failed Bluetooth connection, to an error.
  package init(connecting code: CInt) {
    self =
      switch code {
      case EACCES, EPERM, EBADE, EKEYREJECTED: .notSecured
      case ETIMEDOUT, ENOTCONN, ECONNRESET, ECONNABORTED, EIO, EPIPE: .unreachable
      default: TransportError(errno: code)
      }
  }
}

/// Returns the result of a system call, which is not negative.
///
/// - Throws: the error for `errno` if the result is negative.
@discardableResult
package func checked(_ result: CInt) throws(TransportError) -> CInt {
  guard result >= 0 else { throw TransportError(errno: errno) }
  return result
}
