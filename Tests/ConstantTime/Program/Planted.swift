import HoldfastCore
import HoldfastOpenSSL
import TestSupport

/// Compares as no code of Holdfast does: it ends at the first byte that differs.
func plantedEarlyExit() -> Bool {
  let secret: [UInt8] = marked([UInt8](repeating: 7, count: 32))
  return endsEarly(secret, [UInt8](repeating: 7, count: 32))
}

@inline(never)
private func endsEarly(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  for index in left.indices where left[index] != right[index] { return false }
  return true
}

/// Looks a secret up in a table.
func plantedTable() -> Bool {
  let secret: [UInt8] = marked([3])
  let found = looksUp(secret[0], in: (0..<256).map { UInt8(truncatingIfNeeded: $0 &* 7) })
  let shown = [found]
  reveal(shown.span)
  return shown == [21]
}

@inline(never)
private func looksUp(_ secret: UInt8, in table: [UInt8]) -> UInt8 { table[Int(secret)] }

/// Checks a code as no device does: the comparison of texts ends at the first digit that differs.
func plantedCodeCheck() throws -> Bool {
  var cryptography = OpenSSLCryptography()
  let key: [UInt8] = marked(Array("12345678901234567890".utf8))
  let code = try HOTP.code(counter: 0, key: key.span, hash: .sha1, length: .six, using: &cryptography)
  return isSameText(code, "755224")
}

@inline(never)
private func isSameText(_ code: BoundedText<16>, _ given: BoundedText<16>) -> Bool { code == given }

/// Reads a secret of a token in JOSE as no device does: it decides for each character.
func plantedSwitch() -> Bool {
  let text: [UInt8] = marked(Array("EREREQ".utf8))
  return readsBySwitch(text) == 4
}

@inline(never)
private func readsBySwitch(_ text: [UInt8]) -> Int {
  var total = 0
  for character in text {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): total += Int(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): total += Int(character - UInt8(ascii: "a")) + 26
    default: total += Int(character) + 4
    }
  }
  return total
}
