import HoldfastCore
import HoldfastOpenSSL

/// The roots in an app's key file `mpk.key`, one for each release. The keys of a release are derived from its root.
///
/// The roots are in storage that is wiped.
package struct ReleaseRoots: ~Copyable {
  /// The maximum number of releases in a file.
  package static let maximumCount = 64
  /// The maximum byte count of a file.
  package static let maximumByteCount = 1 << 16

  private var bytes: SecretBytes
  /// The number of releases, at least 1: the current one first, then older ones.
  package private(set) var count = 0
  /// Whether this is the default root, which everybody knows.
  package let isDefault: Bool

  /// Returns the root of the default key, which everybody knows: the first 16 bytes of SHA-256 over a fixed text.
  ///
  /// - Throws: `CryptographyFailure` if the cryptographic library fails.
  package static func `default`() throws(CryptographyFailure) -> ReleaseRoots {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append("holdfast development measurement proof key")
    let digest: Digest = try hash.finish()
    var roots = ReleaseRoots(isDefault: true)
    guard let root = ReleaseRoot(copying: digest.bytes.extracting(first: 16)) else { throw CryptographyFailure() }
    roots.append(root)
    return roots
  }

  /// Parses one root of 32 hexadecimal digits a line. Empty lines, and text after `#`, are ignored.
  ///
  /// - Parameter text: at most ``maximumByteCount`` bytes.
  /// - Throws: `notAKey`, `repeated`, `noKey`, `tooMany`.
  package init(parsing text: Span<UInt8>) throws(KeyFileFault) {
    self.init(isDefault: false)
    guard text.count <= Self.maximumByteCount else { throw .tooMany }
    var start = 0
    var line = 1
    for end in 0...text.count where end == text.count || text[end] == 0x0a {
      try read(text.extracting(start..<end), line: line)
      start = end + 1
      line += 1
    }
    guard count > 0 else { throw .noKey }
  }

  /// Returns a copy of the root at `index`, which must be below ``count``: 16 bytes.
  package borrowing func root(at index: Int) -> ReleaseRoot {
    precondition(index >= 0 && index < count)
    return ReleaseRoot(copying: bytes.bytes.extracting(16 * index..<16 * index + 16)) ?? ReleaseRoot()
  }

  private init(isDefault: Bool) {
    bytes = SecretBytes(zeros: 16 * Self.maximumCount)
    self.isDefault = isDefault
  }

  private mutating func read(_ text: Span<UInt8>, line: Int) throws(KeyFileFault) {
    var digits = 0..<text.count
    for index in text.indices where text[index] == 0x23 {
      digits = 0..<index
      break
    }
    while let first = digits.first, isBlank(text[first]) { digits.removeFirst() }
    while let last = digits.last, isBlank(text[last]) { digits.removeLast() }
    guard !digits.isEmpty else { return }
    guard let root = parsedRoot(text.extracting(digits)) else { throw .notAKey(line: line) }
    for index in 0..<count where areEqual(self.root(at: index), root) { throw .repeated(line: line) }
    guard count < Self.maximumCount else { throw .tooMany }
    append(root)
  }

  private mutating func append(_ root: borrowing ReleaseRoot) {
    let start = 16 * count
    var storage = bytes.mutableBytes
    root.withBytes { root in for index in 0..<16 { storage[start + index] = root[index] } }
    count += 1
  }
}

/// A reason why a key file cannot be used; never its contents.
package enum KeyFileFault: Error, Equatable {
  /// A line, counted from 1, is not 32 hexadecimal digits.
  case notAKey(line: Int)
  /// A line, counted from 1, repeats an earlier root.
  case repeated(line: Int)
  /// The file has no root.
  case noKey
  /// The file has more than 64 roots, or more than 65,536 bytes.
  case tooMany

  /// The line, counted from 1, at which the fault is; nil if it concerns the whole file.
  package var line: Int? {
    switch self {
    case .notAKey(let line), .repeated(let line): line
    case .noKey, .tooMany: nil
    }
  }

  /// The fault as a text for people, without the file and the line.
  package var text: String {
    switch self {
    case .notAKey: "a key is 32 hexadecimal digits"
    case .repeated: "this key occurs twice"
    case .noKey: "the file has no key"
    case .tooMany: "the file has more than \(ReleaseRoots.maximumCount) keys"
    }
  }
}

private func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0d }

private func areEqual(_ left: borrowing ReleaseRoot, _ right: borrowing ReleaseRoot) -> Bool {
  left.withBytes { left in right.withBytes { right in constantTimeEqual(left, right) } }
}

/// Returns the 16 bytes of 32 hexadecimal digits; nil for any other text.
///
/// Timing: depends on the positions of digits and letters in the file.
private func parsedRoot(_ digits: Span<UInt8>) -> ReleaseRoot? {
  guard digits.count == 32 else { return nil }
  var root = ReleaseRoot()
  var isRoot = true
  root.withMutableBytes { bytes in
    for index in digits.indices {
      guard let value = hexadecimalValue(digits[index]) else {
        isRoot = false
        return
      }
      bytes[index / 2] = bytes[index / 2] << 4 | value
    }
  }
  guard isRoot else { return nil }
  return root
}
