import Glibc

/// Why a connection could not be made, or a message not be sent or received.
package enum TransportError: Error, Equatable, Sendable {
  /// The peer ended the connection between two messages, or an earlier fault has already ended this direction of it.
  case closed
  /// The deadline passed before the first byte of a message, or before a connection was made.
  case timedOutWaiting
  /// The deadline passed in the middle of a message that was being received.
  case timedOutReading
  /// The deadline passed before the whole message was handed to the operating system.
  case timedOutSending
  /// A message of more than 4096 bytes.
  case tooLong
  /// The message is longer than the packets that the peer takes.
  case overPeerLimit
  /// The peer ended the connection in the middle of a message, or a message has no bytes.
  case truncated
  /// On a serial line: an empty frame, by which the other end says that a round begins anew. The connection goes on.
  case emptyFrame
  /// The operating system refuses access to this user.
  case permissionDenied
  /// There is no such file, folder or device.
  case notFound
  /// Nobody listens there.
  case refused
  /// Somebody else listens there already, or uses the terminal.
  case addressInUse
  /// What is at the path is of another kind: not a socket, not a terminal, or a socket of the other framing.
  case pathOccupied
  /// ``Listener/cancel()``, ``Listener/close()`` or ``Connection/shutdown()`` was called on this end.
  case cancelled
  /// The system has no Bluetooth, or lacks this protocol of it.
  case unsupported
  /// There is no such Bluetooth adapter.
  case noAdapter
  /// The Bluetooth adapter is powered off.
  case adapterDown
  /// The Bluetooth adapter is blocked by rfkill.
  case adapterBlocked
  /// The peer is not in range, or does not let itself be connected to.
  case unreachable
  /// The radio link was lost.
  case linkLost
  /// The peer does not announce by SDP that it has such a port.
  case notAnnounced
  /// There is no group of that name.
  case unknownGroup
  /// This user may not give a file to that group.
  case groupNotAllowed
  /// The link could not be secured as it has to be: one end refused pairing or encryption.
  case notSecured
  /// Anything else that the operating system answered.
  case other(errno: CInt)

  /// What `code`, a value of `errno`, means here.
  init(errno code: CInt) {
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
  /// What `code`, a value of `errno`, means of a Bluetooth connection that was not made.
  init(connecting code: CInt) {
    self =
      switch code {
      case EACCES, EPERM, EBADE, EKEYREJECTED: .notSecured
      case ETIMEDOUT, ENOTCONN, ECONNRESET, ECONNABORTED, EIO, EPIPE: .unreachable
      default: TransportError(errno: code)
      }
  }
}

/// Passes on the non-negative result of a system call.
///
/// - Throws: what `errno` says, where the result is negative.
@discardableResult
func checked(_ result: CInt) throws(TransportError) -> CInt {
  guard result >= 0 else { throw TransportError(errno: errno) }
  return result
}
