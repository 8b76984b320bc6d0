/// The key id of a public key: the first 8 bytes of SHA-256 over its SEC1 uncompressed point of 65 bytes.
///
/// Source: SEC 1 §2.3.3 for the point.
public func keyID(
  of point: P256Point, using cryptography: inout some Cryptography & ~Copyable
) throws(CryptographyFailure) -> KeyID {
  var hash = try cryptography.sha256()
  hash.append(point.bytes)
  return KeyID(startOf: try hash.finish())
}

extension FixedBytes where count == 8 {
  /// The first 8 bytes of a digest.
  init(startOf digest: Digest) {
    self.init()
    for index in 0..<8 { self[index] = digest[index] }
  }
}
