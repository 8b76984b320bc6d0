import HoldfastCore
import HoldfastOpenSSL

/// The key of an account with which apps that are being developed pass: 16 bytes, as 26 characters of base32.
final class DevelopmentKey: Sendable {
  private let key: Secret<16>
  private static let label = Array("holdfast/1 development".utf8) + [0]

  /// Parses a key; nil for anything else. Source: RFC 4648 §6, without padding, in either case.
  ///
  /// Timing: the characters are compared without branches that depend on them, but for those that are none of base32.
  init?(_ text: String) {
    let characters = Array(text.utf8)
    guard characters.count == 26 else { return nil }
    var key = Secret<16>()
    var isBase32 = true
    var (bits, bitCount, index): (UInt32, Int, Int) = (0, 0, 0)
    key.withMutableBytes { bytes in
      for character in characters {
        guard let value = Self.value(character) else {
          isBase32 = false
          return
        }
        bits = bits << 5 | UInt32(value)
        bitCount += 5
        guard bitCount >= 8, index < 16 else { continue }
        bitCount -= 8
        bytes[index] = UInt8(truncatingIfNeeded: bits >> UInt32(bitCount))
        bits &= (1 << UInt32(bitCount)) - 1
        index += 1
      }
    }
    // The last two bits belong to no byte.
    guard isBase32, bits == 0 else { return nil }
    self.key = key
  }

  private static func value(_ character: UInt8) -> UInt8? {
    let upper = (0x61...0x7a).contains(character) ? character - 0x20 : character
    if (0x41...0x5a).contains(upper) { return upper - 0x41 }
    return (0x32...0x37).contains(upper) ? upper - 0x32 + 26 : nil
  }

  /// Returns whether the other key has the same bytes, in constant time.
  func isSame(as other: DevelopmentKey?) -> Bool {
    guard let other else { return false }
    return key.withBytes { key in other.key.withBytes { constantTimeEqual(key, $0) } }
  }

  /// Returns the code that shows the service, for this evidence, that the app has the key:
  /// `HMAC-SHA-256(key, "holdfast/1 development" ‖ 0x00 ‖ SHA-256(evidence))`.
  func code(for evidence: [UInt8]) throws(CryptographyFailure) -> MAC {
    let digest = try sha256(evidence.span)
    let message = Self.label + [UInt8](digest.bytes)
    var code = MAC()
    var bytes = code.mutableBytes
    try key.withBytes { (key) throws(CryptographyFailure) in
      try HMAC.sha256.authenticate(message.span, key: key, into: &bytes)
    }
    return code
  }
}
