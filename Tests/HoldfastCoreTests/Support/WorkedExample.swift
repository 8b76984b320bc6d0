import Foundation
import HoldfastCore
import TestSupport

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
