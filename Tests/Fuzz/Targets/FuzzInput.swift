/// The fuzzer's bytes, read from the front; zeros once they are used up.
struct FuzzInput {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isEmpty: Bool { position >= bytes.count }

  mutating func byte() -> UInt8 {
    guard !isEmpty else { return 0 }
    position += 1
    return bytes[position - 1]
  }

  mutating func number() -> Int { Int(byte()) << 8 | Int(byte()) }

  mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in byte() } }

  /// Returns the next message, whose length is in the two bytes before it, or as much of it as there is.
  mutating func message() -> [UInt8] {
    let count = min(number(), bytes.count - min(position, bytes.count))
    defer { position += count }
    return Array(bytes[position..<position + count])
  }
}
