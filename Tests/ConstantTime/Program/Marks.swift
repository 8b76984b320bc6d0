import CSecretMarks
import HoldfastCore
import HoldfastOpenSSL

/// Marks bytes as secret.
func mark(_ bytes: Span<UInt8>) {
  unsafe bytes.withUnsafeBytes { unsafe marks_set($0.baseAddress, $0.count) }
}

/// Makes bytes public.
func reveal(_ bytes: Span<UInt8>) {
  unsafe bytes.withUnsafeBytes { unsafe marks_clear($0.baseAddress, $0.count) }
}

/// Returns secret bytes that nothing else shares.
func marked(_ bytes: [UInt8]) -> [UInt8] {
  let copy = bytes.map { $0 }
  mark(copy.span)
  return copy
}

/// Returns a marked secret.
func marked<let count: Int>(_ bytes: [UInt8]) -> Secret<count> {
  let secret = Secret<count>(copying: bytes.span)!
  secret.withBytes { mark($0) }
  return secret
}

/// Returns marked secret bytes.
func marked(_ bytes: [UInt8]) -> SecretBytes {
  let secret = SecretBytes(copying: bytes.span)
  secret.withBytes { mark($0) }
  return secret
}
