import HoldfastCore
import HoldfastOpenSSL

/// The one-use code of an invitation: 100 random bits, as 20 characters of base32 in four groups, such as
/// `ABCDE-FGHIJ-KLMNO-PQRST`.
///
/// Source: RFC 4648 §6 for the alphabet.
package struct InvitationCode: Sendable, Equatable {
  /// The code with hyphens. It is a secret until it was used.
  package let text: String

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  /// Makes a code.
  package init(random: inout some RandomSource & ~Copyable) throws(RandomFailure) {
    let bytes: FixedBytes<20> = try random.fixedBytes()
    self.init((0..<20).map { Self.alphabet[Int(bytes[$0] & 31)] })
  }

  /// Reads a code in either case: 20 characters of base32, with or without hyphens between groups of five.
  package init?(_ typed: String) {
    var characters: [UInt8] = []
    var isBehindHyphen = false
    for byte in typed.utf8 {
      if byte == UInt8(ascii: "-") {
        guard !isBehindHyphen, [5, 10, 15].contains(characters.count) else { return nil }
        isBehindHyphen = true
        continue
      }
      isBehindHyphen = false
      let character = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? byte - 32 : byte
      guard characters.count < 20, Self.alphabet.contains(character) else { return nil }
      characters.append(character)
    }
    guard characters.count == 20 else { return nil }
    self.init(characters)
  }

  private init(_ characters: [UInt8]) {
    text = stride(from: 0, to: 20, by: 5)
      .map { String(decoding: characters[$0..<$0 + 5], as: UTF8.self) }.joined(separator: "-")
  }

  /// The digest under which the service stores the code. With 100 random bits, the code cannot be found from it.
  func digest() throws(FleetFault) -> Digest {
    do throws(CryptographyFailure) {
      var cryptography = OpenSSLCryptography()
      var hash = cryptography.sha256()
      hash.append(domain: "holdfast/1 invitation")
      hash.append(Array(text.utf8).span)
      return try hash.finish()
    } catch { throw .cryptography }
  }
}
