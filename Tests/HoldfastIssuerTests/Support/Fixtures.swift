import HoldfastCore
import HoldfastFormats
import TestSupport

/// Reads a JSON file next to the tests; `path` begins in the folder `Tests`.
func fixture(_ path: String, file: String = #filePath) throws -> JSONValue {
  let tests = file.split(separator: "/").dropLast(3).joined(separator: "/")
  return try JSONValue(parsing: readFile("/\(tests)/\(path)"), byteLimit: 1 << 20)
}

extension Span where Element == UInt8 {
  var text: String { String(decoding: array, as: UTF8.self) }
}

/// Random bytes that come in a known order, and fail when they are used up.
struct ListedRandom: RandomSource {
  var bytes: [UInt8]

  mutating func fill(_ output: inout MutableSpan<UInt8>) throws(RandomFailure) {
    guard bytes.count >= output.count else { throw RandomFailure() }
    for index in output.indices { output[index] = bytes[index] }
    bytes.removeFirst(output.count)
  }
}
