import Glibc
import HoldfastCore
import HoldfastFormats

/// Reads a JSON file beside the tests; `path` begins in the folder `Tests`.
func fixture(_ path: String, file: String = #filePath) throws -> JSONValue {
  let tests = file.split(separator: "/").dropLast(3).joined(separator: "/")
  return try JSONValue(parsing: readFile("/\(tests)/\(path)"), byteLimit: 1 << 20)
}

struct UnreadableFile: Error {}

func readFile(_ path: String) throws -> [UInt8] {
  guard let file = unsafe fopen(path, "rb") else { throw UnreadableFile() }
  defer { unsafe fclose(file) }
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 65536)
  while true {
    let count = unsafe fread(&chunk, 1, chunk.count, file)
    if count == 0 { return bytes }
    bytes += chunk.prefix(count)
  }
}

/// The bytes of hexadecimal digits; stops the test on anything else.
func hex(_ text: String) -> [UInt8] {
  stride(from: 0, to: text.utf8.count, by: 2).map { UInt8(text.dropFirst($0).prefix(2), radix: 16)! }
}

/// Lower-case hexadecimal digits.
func hex(_ bytes: [UInt8]) -> String {
  bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

extension Span where Element == UInt8 {
  var array: [UInt8] { indices.map { self[$0] } }
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
