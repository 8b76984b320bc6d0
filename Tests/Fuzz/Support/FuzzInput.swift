/// The fuzzer's bytes, read from the front; zeros once they are used up.
package struct FuzzInput {
  private let bytes: [UInt8]
  private var position = 0

  package init(_ data: UnsafePointer<UInt8>, _ count: Int) {
    bytes = unsafe Array(UnsafeBufferPointer(start: data, count: count))
  }

  package var isEmpty: Bool { position >= bytes.count }

  package mutating func byte() -> UInt8 {
    guard !isEmpty else { return 0 }
    position += 1
    return bytes[position - 1]
  }

  package mutating func number() -> Int { Int(byte()) << 8 | Int(byte()) }

  package mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in byte() } }
}
