import HoldfastCore
import HoldfastOpenSSL

/// The Swift source that puts keys together from shares at run time.
///
/// Each byte is the exclusive or of three shares. Two come from SHA-256("holdfast/1 mpk shares" ‖ 0x00 ‖ index (u8) ‖ key),
/// so that the same keys give the same program; the third makes up the byte.
struct GeneratedSource: ~Copyable {
  let text: String

  init(_ file: borrowing KeyFile) throws(CryptographyFailure) {
    var text = """
      // Made by MeasurementProofKeyTool from mpk.key, or from the development key.
      import HoldfastCore

      enum GeneratedKeys {
        static let isDevelopmentKey = \(file.isDevelopmentKey)
        static let count = \(file.keys.count)

        static func assemble(_ index: Int, into key: inout MutableSpan<UInt8>) {
          switch index {

      """
    for index in file.keys.indices { text += "    case \(index): assemble\(index)(&key)\n" }
    text += "    default: break\n    }\n  }\n"
    for (index, key) in file.keys.enumerated() { text += try Self.function(index, key) }
    self.text = text + "}\n"
  }

  private static func function(_ index: Int, _ key: [UInt8]) throws(CryptographyFailure) -> String {
    let masks = try masks(index, key)
    var text = "\n  private static func assemble\(index)(_ key: inout MutableSpan<UInt8>) {\n"
    for position in key.indices.sorted(by: { (masks[$0], $0) < (masks[$1], $1) }) {
      let first = masks[position]
      let second = masks[16 + position]
      let third = key[position] ^ first ^ second
      text += "    key[\(position)] = opaque(\(first)) ^ opaque(\(second)) ^ opaque(\(third))\n"
    }
    return text + "  }\n"
  }

  private static func masks(_ index: Int, _ key: [UInt8]) throws(CryptographyFailure) -> Digest {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(domain: "holdfast/1 mpk shares")
    hash.append(UInt8(truncatingIfNeeded: index))
    hash.append(key.span)
    return try hash.finish()
  }
}
