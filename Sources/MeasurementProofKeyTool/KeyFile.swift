import HoldfastCore
import HoldfastOpenSSL

/// The measurement proof keys of a package.
struct KeyFile: ~Copyable {
  /// 16 bytes each, the current key first; never empty.
  let keys: [[UInt8]]
  /// Whether this is the key that everybody knows.
  let isDevelopmentKey: Bool

  /// The development key: the first 16 bytes of SHA-256 over a sentence.
  init() throws(CryptographyFailure) {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append("holdfast development measurement proof key")
    let digest = try hash.finish()
    var key: [UInt8] = []
    key.append(digest.bytes.extracting(first: 16))
    keys = [key]
    isDevelopmentKey = true
  }

  /// Reads one key of 32 hexadecimal digits a line. Empty lines, and what follows `#`, do not count.
  init(parsing text: [UInt8]) throws(KeyFileFault) {
    var keys: [[UInt8]] = []
    for (index, line) in text.split(separator: 0x0a, omittingEmptySubsequences: false).enumerated() {
      let digits = Self.withoutBlanks(line.prefix { $0 != 0x23 })
      if digits.isEmpty { continue }
      guard let key = Self.key(digits) else { throw .notAKey(line: index + 1) }
      guard !keys.contains(key) else { throw .repeated(line: index + 1) }
      keys.append(key)
    }
    guard !keys.isEmpty else { throw .noKey }
    self.keys = keys
    isDevelopmentKey = false
  }

  private static func withoutBlanks(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }
    var slice = line.drop(while: isBlank)
    while let last = slice.last, isBlank(last) { slice.removeLast() }
    return slice
  }

  private static func key(_ digits: ArraySlice<UInt8>) -> [UInt8]? {
    guard digits.count == 32 else { return nil }
    var key: [UInt8] = []
    var high: UInt8?
    for digit in digits {
      guard let value = Character(UnicodeScalar(digit)).hexDigitValue else { return nil }
      if let first = high {
        key.append(first << 4 | UInt8(value))
        high = nil
      } else {
        high = UInt8(value)
      }
    }
    return key
  }
}

/// Why `mpk.key` cannot be used; never what it says.
enum KeyFileFault: Error, Equatable {
  /// A line, counted from 1, is not 32 hexadecimal digits.
  case notAKey(line: Int)
  /// A line, counted from 1, has a key that came before.
  case repeated(line: Int)
  /// There is no key in it.
  case noKey
}
