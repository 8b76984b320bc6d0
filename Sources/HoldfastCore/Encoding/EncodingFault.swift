/// Why bytes could not be read or written.
public enum EncodingFault: Error {
  /// Not a well-formed, deterministic encoding (RFC 8949 §4.2.1; RFC 8259; RFC 4648 §4 and §5).
  case malformed
  /// Well-formed, but not the structure that belongs here.
  case unexpected
  /// Longer than the space that there is for it.
  case tooLong
}
