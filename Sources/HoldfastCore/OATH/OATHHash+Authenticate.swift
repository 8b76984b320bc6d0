extension OATHHash {
  /// Writes the HMAC of `message` under `key`, both of any length, over the ``byteCount`` bytes of `code`.
  ///
  /// Source: RFC 2104. Timing: depends on byte counts alone.
  @inlinable
  func authenticate<Crypto: Cryptography & ~Copyable>(
    _ message: Span<UInt8>, key: Span<UInt8>, using cryptography: inout Crypto, into code: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    switch self {
    case .sha1:
      var mac = try cryptography.hmacSHA1(key: key)
      mac.append(message)
      try mac.finish(into: &code)
    case .sha256:
      var mac = try cryptography.hmacSHA256(key: key)
      mac.append(message)
      try mac.finish(into: &code)
    case .sha512:
      var mac = try cryptography.hmacSHA512(key: key)
      mac.append(message)
      try mac.finish(into: &code)
    }
  }

  /// The hash of `message`: as many bytes as ``byteCount``.
  ///
  /// Source: FIPS 180-4. Timing: depends on byte counts alone.
  func digest<Crypto: Cryptography & ~Copyable>(
    _ message: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> ByteBuffer<64> {
    var digest = ByteBuffer<64>(zeros: byteCount)
    var bytes = digest.mutableBytes
    switch self {
    case .sha1:
      var hash = try cryptography.sha1()
      hash.append(message)
      try hash.finish(into: &bytes)
    case .sha256:
      var hash = try cryptography.sha256()
      hash.append(message)
      try hash.finish(into: &bytes)
    case .sha512:
      var hash = try cryptography.sha512()
      hash.append(message)
      try hash.finish(into: &bytes)
    }
    return digest
  }
}
