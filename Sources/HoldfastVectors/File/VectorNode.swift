import HoldfastCore
import HoldfastJSON

/// A JSON value that knows where in which file it stands, so that whatever is wrong with it can be found.
struct VectorNode {
  let value: JSONValue
  let file: String
  let location: String

  /// A fault at this place.
  func fault(_ kind: VectorFault.Kind) -> VectorFault {
    VectorFault(file: file, location: location, kind: kind)
  }

  /// The member of that name; nil when there is none.
  func optional(_ name: String) -> VectorNode? {
    guard let member = value[name] else { return nil }
    return VectorNode(value: member, file: file, location: location.isEmpty ? name : "\(location).\(name)")
  }

  /// The member of that name, which must be there.
  func member(_ name: String) throws(VectorFault) -> VectorNode {
    guard value.members != nil else { throw fault(.wrongType) }
    guard let member = optional(name) else {
      throw VectorFault(file: file, location: location.isEmpty ? name : "\(location).\(name)", kind: .missing)
    }
    return member
  }

  /// The elements of an array.
  func elements() throws(VectorFault) -> [VectorNode] {
    guard let elements = value.elements else { throw fault(.wrongType) }
    return elements.enumerated().map { VectorNode(value: $1, file: file, location: "\(location)[\($0)]") }
  }

  /// The text of a string.
  func text() throws(VectorFault) -> String {
    guard let text = value.text else { throw fault(.wrongType) }
    return text
  }

  /// An integer from 0 to 2^53 - 1.
  func number() throws(VectorFault) -> UInt64 {
    guard let number = value.number else { throw fault(.wrongType) }
    return number
  }

  /// True or false.
  func flag() throws(VectorFault) -> Bool {
    guard let flag = value.flag else { throw fault(.wrongType) }
    return flag
  }

  /// The bytes of a string of hexadecimal digits.
  func bytes() throws(VectorFault) -> [UInt8] {
    guard let bytes = hexadecimalBytes(try text()) else { throw fault(.notHexadecimal) }
    return bytes
  }

  /// Exactly `count` bytes.
  func fixed<let count: Int>() throws(VectorFault) -> FixedBytes<count> {
    let bytes = try bytes()
    guard let fixed = FixedBytes<count>(bytes.span) else {
      throw fault(.wrongByteCount(expected: count, found: bytes.count))
    }
    return fixed
  }

  /// Whether this is null.
  var isNull: Bool { value == .null }
}
