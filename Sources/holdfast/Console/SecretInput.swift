import HoldfastCore
import HoldfastOpenSSL

/// What a verb reads and nobody else may see: a file, or standard input for `-`.
enum SecretInput {
  /// All of it, at most `limit` bytes.
  static func read(_ path: String, limit: Int) throws(Failure) -> SecretBytes {
    var bytes = try Input.read(path, limit: limit)
    let secret = SecretBytes(copying: bytes.span)
    var span = bytes.mutableSpan
    wipe(&span)
    return secret
  }

  /// All of it but the end of its line, where there is one.
  static func readLine(_ path: String, limit: Int) throws(Failure) -> SecretBytes {
    let whole = try read(path, limit: limit)
    var end = whole.count
    if end > 0, whole.bytes[end - 1] == 0x0a {
      end -= 1
      if end > 0, whole.bytes[end - 1] == 0x0d { end -= 1 }
    }
    return SecretBytes(copying: whole.bytes.extracting(0..<end))
  }

  /// What to call it in a sentence.
  static func name(_ path: String) -> String { path == "-" ? "standard input" : path }
}
