/// How messages are told apart.
public enum Framing: Sendable, Hashable, CaseIterable {
  /// One message is one packet: `SOCK_SEQPACKET`.
  case packets
  /// A stream of bytes: a length of two bytes, big-endian, then the message.
  case stream
}
