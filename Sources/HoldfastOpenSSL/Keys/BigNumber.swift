import COpenSSL
import HoldfastCore

/// A libcrypto integer from big-endian bytes, wiped when it goes out of scope.
func bigNumber(_ bytes: Span<UInt8>) throws(CryptographyFailure) -> Handle {
  guard let count = CInt(exactly: bytes.count) else { throw CryptographyFailure() }
  let number = try unsafe Handle(BN_secure_new(), freedBy: BN_clear_free)
  unsafe BN_set_flags(number.pointer, BN_FLG_CONSTTIME)
  let result = unsafe bytes.withUnsafeBufferPointer { unsafe BN_bin2bn($0.baseAddress, count, number.pointer) }
  guard unsafe result != nil else { throw failure() }
  return number
}

/// Writes a libcrypto integer over all of `output`, big-endian, padded with zeros in front; throws when it does not fit.
func writeBigNumber(_ number: OpaquePointer?, into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
  guard let count = CInt(exactly: output.count) else { throw CryptographyFailure() }
  let written = unsafe output.withUnsafeMutableBufferPointer { unsafe BN_bn2binpad(number, $0.baseAddress, count) }
  guard written == count else { throw failure() }
}
