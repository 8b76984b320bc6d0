import Foundation
import HoldfastCore

/// The worked example of the protocol, made by an independent implementation.
struct WorkedExample {
  static var shared: WorkedExample { WorkedExample() }
  let root: [String: Any]

  init() {
    let file = URL(filePath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Interop/worked-example.json")
    root = try! JSONSerialization.jsonObject(with: Data(contentsOf: file)) as! [String: Any]
  }

  /// The bytes at a path such as `measurement.mpk`.
  func bytes(_ path: String) -> [UInt8] { hex(text(path)) }

  func text(_ path: String) -> String {
    var node: Any = root
    for key in path.split(separator: ".") { node = (node as! [String: Any])[String(key)]! }
    return node as! String
  }

  func round(_ name: String) -> [String: String] {
    (root["rounds"] as! [[String: String]]).first { $0["name"] == name }!
  }

  func token(_ name: String) -> (bytes: [UInt8], encoding: TokenEncoding) {
    name == "jose" ? (Array(text("jose.token").utf8), .jose) : (bytes("cose.token"), .cose)
  }
}

func hex(_ text: String) -> [UInt8] {
  var bytes: [UInt8] = []
  var rest = Substring(text)
  while rest.count >= 2 {
    bytes.append(UInt8(rest.prefix(2), radix: 16)!)
    rest = rest.dropFirst(2)
  }
  return bytes
}

func hex(_ bytes: Span<UInt8>) -> String {
  var text = ""
  for index in bytes.indices { text += String(format: "%02x", bytes[index]) }
  return text
}

func fixed<let count: Int>(_ bytes: [UInt8]) -> FixedBytes<count> { FixedBytes(bytes.span)! }
func secret<let count: Int>(_ bytes: [UInt8]) -> Secret<count> { Secret(copying: bytes.span)! }

func hex<let capacity: Int>(contentsOf buffer: borrowing ByteBuffer<capacity>) -> String { hex(buffer.bytes) }
