import HoldfastCore
import HoldfastOpenSSL

/// A maker's signature over the bytes of a file: ECDSA with P-256 and SHA-256 in DER, as `openssl dgst -sha256 -sign` writes it.
package enum MakerSignature {
  /// The largest signature, in bytes.
  package static let maximumByteCount = 72

  /// Returns the first of some keys with which a file was signed; nil if the signature is that of none.
  ///
  /// - Parameters:
  ///   - text: The file, exactly as it was signed.
  ///   - signature: The signature in DER, at most 72 bytes.
  ///   - makers: Public keys of makers.
  package static func signer(of text: [UInt8], _ signature: [UInt8], among makers: [P256Point]) -> P256Point? {
    guard let numbers = numbers(inDER: signature) else { return nil }
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(text.span)
    guard let digest: Digest = try? hash.finish() else { return nil }
    return makers.first { maker in
      do throws(CryptographyFailure) {
        try cryptography.p256Verify(key: maker, digest: digest, signature: numbers)
        return true
      } catch { return false }
    }
  }

  /// Reads the two numbers of a signature in DER, whose only encoding is the shortest one.
  ///
  /// - Returns: r and s, 32 bytes each, big-endian; nil for anything else.
  /// Source: RFC 3279 §2.2.3, X.690 §8.3 and §10.1.
  package static func numbers(inDER der: [UInt8]) -> FixedBytes<64>? {
    guard der.count >= 2, der[0] == 0x30, Int(der[1]) == der.count - 2, der[1] < 0x80 else { return nil }
    var rest = der[2...]
    var raw: [UInt8] = []
    for _ in 0..<2 {
      guard rest.count >= 3, rest.removeFirst() == 0x02 else { return nil }
      let count = Int(rest.removeFirst())
      guard (1...33).contains(count), rest.count >= count else { return nil }
      var number = Array(rest.prefix(count))
      rest = rest.dropFirst(count)
      guard number[0] < 0x80 else { return nil }
      if count > 1, number[0] == 0 {
        guard number[1] >= 0x80 else { return nil }
        number.removeFirst()
      }
      guard number.count <= 32 else { return nil }
      raw += [UInt8](repeating: 0, count: 32 - number.count) + number
    }
    return rest.isEmpty ? FixedBytes<64>(raw.span) : nil
  }
}
