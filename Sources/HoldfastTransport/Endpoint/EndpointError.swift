/// Which part of an endpoint is wrong.
public enum EndpointError: Error, Equatable, Sendable {
  /// The part before the first colon is missing, or names no transport.
  case transport
  /// The path is empty.
  case pathEmpty
  /// The path is longer than 107 bytes (sockets) or 4095 bytes (terminals).
  case pathTooLong
  /// The path contains a NUL.
  case pathContainsNUL
  /// The Bluetooth address is not six pairs of hex digits with colons between them.
  case address
  /// `psm` is not a number, even, out of range, or reserved for standards; or it is missing where the transport is `le`.
  case psm
  /// `channel` is not a number from 1 to 30.
  case channel
  /// `hci` is not `hci0` to `hci65535`.
  case adapter
  /// `type` is not `public` or `random`.
  case addressKind
  /// `security` is not `low`, `medium` or `high`.
  case security
  /// `mode` is not an octal number from 0 to 777.
  case mode
  /// `group` is empty, has more than 255 bytes, or a NUL.
  case group
  /// An option that this transport does not have, or one without a value.
  case unknownOption
  /// An option is given twice.
  case duplicateOption
}
