import Glibc
import HoldfastStorage

/// What a verb reads: a file, or standard input for `-`.
enum Input {
  /// All of it, at most `limit` bytes. `explain` may put an error in its own words.
  static func read(
    _ path: String, limit: Int, explain: (FileError) -> Failure? = { _ in nil }
  ) throws(Failure) -> [UInt8] {
    guard path != "-" else { return try standardInput(limit: limit) }
    do throws(FileError) { return try Files.readFile(at: path, limit: limit) } catch {
      let hint: String? =
        switch error.kind {
        case .notFound: "is the name right? A name is looked for in the current folder; - is standard input"
        case .notRegular: "to read from a pipe, give - and connect standard input"
        default: nil
        }
      throw explain(error) ?? Failure(error, hint: hint)
    }
  }

  private static func standardInput(limit: Int) throws(Failure) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(STDIN_FILENO, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw Failure(.malformed, "standard input cannot be read") }
      if count == 0 { return bytes }
      bytes += chunk[..<count]
      guard bytes.count <= limit else { throw Failure(.malformed, "standard input is too long") }
    }
  }
}
