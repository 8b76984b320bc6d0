import HoldfastCore

/// Why a JOSE object or key is refused.
public enum JOSEFault: Error, Equatable {
  /// Not a compact serialisation, not strict base64url or not strict JSON.
  case malformed
  /// Well-formed, but its header, its parts or its key are not what the configured key calls for.
  case unexpected
  /// It asks for what is never done: `zip`, `crit`, or a key that the sender chose.
  case refused
  /// It did not decrypt or verify, or libcrypto failed; opaque on purpose.
  case cryptography

  init(_ fault: EncodingFault) {
    self = fault == .unexpected ? .unexpected : .malformed
  }
}
