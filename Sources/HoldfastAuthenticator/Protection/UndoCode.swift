import HoldfastCore
import HoldfastOpenSSL

/// 128 random bits that are shown once and stored nowhere: the key to a user's records as they were before a change of PIN.
public struct UndoCode: ~Copyable, Sendable {
  let bytes: Secret<16>

  /// 26 characters for 128 bits and two zeros, and two that check them.
  static let characterCount = 28

  /// A fresh one.
  init<Random: RandomSource & ~Copyable>(random: inout Random) throws(AuthenticatorFault) {
    do throws(RandomFailure) { bytes = try random.secret() } catch { throw .failed }
  }

  /// Reads seven groups of four characters, as ``withText(_:)`` writes them: small letters, spaces and missing hyphens do
  /// not matter, nor does O for 0, or I and L for 1.
  ///
  /// Throws `malformedUndoCode` when the check characters do not fit, or characters are missing or foreign.
  public init(_ text: Span<UInt8>) throws(AuthenticatorFault) {
    var values = Secret<28>()
    let count = values.withMutableBytes { values in
      var count = 0
      var foreign: UInt8 = 0
      for index in text.indices where ![0x2d, 0x20, 0x0a, 0x0d, 0x09].contains(text[index]) {
        let value = CrockfordBase32.value(text[index])
        foreign |= value & 0x80
        if count < Self.characterCount { values[count] = value & 0x1f }
        count += 1
      }
      return opaque(foreign) == 0 ? count : 0
    }
    guard count == Self.characterCount else { throw .malformedUndoCode }
    var bytes = Secret<16>()
    values.withBytes { values in
      bytes.withMutableBytes { bytes in
        for bit in 0..<128 { bytes[bit / 8] |= (values[bit / 5] >> UInt8(4 - bit % 5) & 1) << UInt8(7 - bit % 8) }
      }
    }
    let expected = try Self.characters(of: bytes)
    let isRight = values.withBytes { given in
      expected.withBytes { expected in constantTimeEqual(given, expected) }
    }
    guard isRight else { throw .malformedUndoCode }
    self.bytes = bytes
  }

  /// Lends it as text: seven groups of four characters, with hyphens between them.
  public func withText<Result>(_ body: (Span<UInt8>) -> Result) throws(AuthenticatorFault) -> Result {
    let values = try Self.characters(of: bytes)
    var text = SecretBytes(zeros: Self.characterCount + Self.characterCount / 4 - 1)
    var output = text.mutableBytes
    values.withBytes { values in
      for index in output.indices {
        let isHyphen = index % 5 == 4
        output[index] = isHyphen ? 0x2d : CrockfordBase32.character(values[index - index / 5])
      }
    }
    return body(text.bytes)
  }

  /// The five bits of each character, those that check the others last.
  private static func characters(of bytes: borrowing Secret<16>) throws(AuthenticatorFault) -> Secret<28> {
    var check = Digest()
    var hash = SHA256Stream()
    hash.append(domain: "holdfast/1 undo code")
    do throws(CryptographyFailure) {
      bytes.withBytes { hash.append($0) }
      check = try hash.finish()
    } catch { throw .failed }
    var values = Secret<28>()
    bytes.withBytes { bytes in
      values.withMutableBytes { values in
        for bit in 0..<128 { values[bit / 5] |= (bytes[bit / 8] >> UInt8(7 - bit % 8) & 1) << UInt8(4 - bit % 5) }
        values[26] = check[0] & 0x1f
        values[27] = check[1] & 0x1f
      }
    }
    return values
  }
}
