import Glibc
import HoldfastCore
import HoldfastOpenSSL

/// What a verb reads and nobody else may see: a file, or standard input for `-`.
enum SecretInput {
  /// All of it, at most `limit` bytes.
  ///
  /// `option` is how the file was named. Where there is no such file, its name is not repeated: it may be the secret.
  static func read(_ path: String, of option: String? = nil, limit: Int) throws(Failure) -> SecretBytes {
    var bytes = try Input.read(path, limit: limit) { error in
      guard let option else { return nil }
      switch error.kind {
      case .notFound, .notDirectory, .other(ENAMETOOLONG), .other(EINVAL):
        return Failure(
          .malformed, "\(option): there is no such file",
          hint: "\(option) takes the name of a file, or - for standard input, and never the secret itself")
      default: return nil
      }
    }
    let secret = SecretBytes(copying: bytes.span)
    var span = bytes.mutableSpan
    wipe(&span)
    return secret
  }

  /// All of it but the end of its line, where there is one.
  static func readLine(_ path: String, of option: String? = nil, limit: Int) throws(Failure) -> SecretBytes {
    let whole = try read(path, of: option, limit: limit)
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

extension SecretInput {
  /// The first line of a file, or the next one of standard input, so that several secrets may come from there.
  static func nextLine(_ path: String, of option: String? = nil, limit: Int) throws(Failure) -> SecretBytes {
    guard path == "-" else { return try readLine(path, of: option, limit: limit) }
    var line = SecretBytes(zeros: limit)
    var count = 0
    while true {
      var byte: UInt8 = 0
      let result = unsafe Glibc.read(STDIN_FILENO, &byte, 1)
      if result < 0 && errno == EINTR { continue }
      guard result >= 0 else { throw Failure(.malformed, "standard input cannot be read") }
      if result == 0 || byte == 0x0a { break }
      guard count < limit else { throw Failure(.malformed, "a line of standard input is too long") }
      var bytes = line.mutableBytes
      bytes[count] = byte
      count += 1
    }
    if count > 0, line.bytes[count - 1] == 0x0d { count -= 1 }
    return SecretBytes(copying: line.bytes.extracting(first: count))
  }

  /// All that can be read from an open file descriptor, which another program handed over.
  static func read(descriptor: Int32, limit: Int) throws(Failure) -> SecretBytes {
    var secret = SecretBytes(zeros: limit + 1)
    var count = 0
    while count <= limit {
      var bytes = secret.mutableBytes
      let result = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe Glibc.read(descriptor, buffer.baseAddress! + count, buffer.count - count)
      }
      if result < 0 && errno == EINTR { continue }
      guard result >= 0 else { throw Failure(.malformed, "file descriptor \(descriptor) cannot be read") }
      if result == 0 { break }
      count += result
    }
    return SecretBytes(copying: secret.bytes.extracting(first: count))
  }
}

extension SecretInput {
  /// The first line of a file; for `-` what a person types unseen, where standard input is a terminal, or else its next line.
  static func lineOrAnswer(
    _ path: String, of option: String, question: String, limit: Int
  ) throws(Failure) -> SecretBytes {
    guard path == "-" && isatty(STDIN_FILENO) == 1 else { return try nextLine(path, of: option, limit: limit) }
    return try SecretPrompt.ask(question, option: "a file")
  }
}
