/// The hash under a code's HMAC.
///
/// Source: RFC 4226 §5.3 (SHA-1), RFC 6238 §1.2, RFC 6287 §5.2. The raw value is what Holdfast's CBOR writes.
public enum OATHHash: UInt8, Sendable, CaseIterable {
  case sha1 = 1
  case sha256 = 2
  case sha512 = 3

  /// The bytes of an HMAC: 20, 32 or 64.
  @inlinable
  public var byteCount: Int {
    switch self {
    case .sha1: 20
    case .sha256: 32
    case .sha512: 64
    }
  }
}
