import HoldfastCore
import HoldfastJSON
import HoldfastKeys
import HoldfastOpenSSL

extension Verb {
  /// Prints a code, alone or with what `--json` adds.
  func printCode(_ code: String, _ members: [(String, JSONValue)]) {
    guard output.json else { return Console.result(code) }
    Console.result(.object([("code", .string(code))] + members))
  }

  /// Warns of a secret that is easier to guess than the hash could make it.
  func warn(ofShort secret: borrowing SecretBytes, for hash: OATHHash) {
    guard secret.count < hash.byteCount else { return }
    Console.warning(
      "the secret has \(secret.count) bytes; RFC 4226 asks for 16 at least, and \(hash.name) carries \(hash.byteCount)")
  }
}

/// A decimal number in `range`, digits alone.
func number(_ text: String, of option: String, in range: ClosedRange<UInt64>) throws(Failure) -> UInt64 {
  guard let number = decimal(text), range.contains(number) else {
    throw Failure(.usage, "\(option) is from \(range.lowerBound) to \(range.upperBound)")
  }
  return number
}

/// A number in decimal digits; nil for signs, spaces and what has more than 64 bits.
func decimal(_ text: String) -> UInt64? {
  guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
  return UInt64(text)
}

/// A whole HMAC in hexadecimal digits.
func hexadecimal(_ code: borrowing ByteBuffer<64>) -> String { hexadecimal(code.bytes) }
