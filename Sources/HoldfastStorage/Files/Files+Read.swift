import Glibc

extension Files {
  /// Reads a whole file.
  ///
  /// - Parameters:
  ///   - path: A regular file; those of `/proc` count.
  ///   - limit: The most bytes there may be; enforced while reading too, so that a growing file ends it.
  ///   - requirements: What is checked, on the open file, before anything is read.
  /// - Returns: The contents.
  /// - Throws: `tooLarge`, `isDirectory`, `notRegular`, `symbolicLink`, `tooOpen`, `wrongOwner`, `notFound`,
  ///   `noPermission`, `other`.
  public static func readFile(
    at path: String, limit: Int, requirements: FileRequirements = []
  ) throws(FileError) -> [UInt8] {
    let file = try ReadableFile(path, limit: limit, requirements: requirements)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(file.byteCount)
    var chunk = [UInt8](repeating: 0, count: min(max(file.byteCount, 4095), limit, 1 << 16) + 1)
    do throws(SystemError) {
      while true {
        let byteCount = try file.descriptor.read(into: &chunk)
        if byteCount == 0 { return bytes }
        guard byteCount <= limit - bytes.count else { throw SystemError(EFBIG) }
        bytes.append(contentsOf: chunk[..<byteCount])
      }
    } catch {
      throw FileError(error, at: path)
    }
  }

  /// Lends the contents of a file with a secret, and wipes this only copy afterwards, whatever happens.
  ///
  /// - Parameters:
  ///   - path: A regular file.
  ///   - limit: The most bytes there may be. The buffer never moves: a file that grows while it is read is `tooLarge`,
  ///     and so is one of `/proc` above 64 KiB.
  ///   - requirements: What is checked before anything is read; owned by this user and closed to others by default.
  ///   - body: Receives the contents. What can fail in it goes out as a `Result`.
  /// - Returns: What the body returns.
  /// - Throws: As `readFile`.
  public static func readSecretFile<Result: ~Copyable>(
    at path: String, limit: Int, requirements: FileRequirements = .secret, _ body: (Span<UInt8>) -> Result
  ) throws(FileError) -> Result {
    let file = try ReadableFile(path, limit: limit, requirements: requirements)
    return try file.lend(limit: limit, at: path, body)
  }
}
