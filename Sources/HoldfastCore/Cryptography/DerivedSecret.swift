/// A secret that follows from a device's private key: `HKDF-SHA-256(ikm: scalar, no salt, info: label, 32 bytes)`.
///
/// Made of the key, so that there is no second secret that could be lost, or be another device's. `scalar` is big-endian;
/// `label` has at most 64 bytes.
public func derivedSecret<Crypto: Cryptography & ~Copyable>(
  _ label: StaticString, from scalar: borrowing Secret<32>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> Secret<32> {
  var info = ByteBuffer<64>()
  do throws(EncodingFault) { try info.append(label) } catch { throw CryptographyFailure() }
  var secret = Secret<32>()
  try secret.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
    try scalar.withBytes { (inputKey: Span<UInt8>) throws(CryptographyFailure) in
      try cryptography.hkdfSHA256(inputKey: inputKey, salt: Span(), info: info.bytes, into: &output)
    }
  }
  return secret
}
