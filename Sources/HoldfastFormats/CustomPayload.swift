/// The payload of a custom token: the claims that an app chooses.
///
/// App and service check it with the same function, each before it goes on.
package enum CustomPayload {
  /// The largest payload, in bytes of compact JSON.
  package static let byteLimit = 4096
  /// The largest number of levels of objects and arrays. The task of a carrier puts two around them.
  package static let levelLimit = JSONValue.levelLimit - 2
  /// The claims that the service sets.
  package static let reservedClaims = ["iss", "iat", "exp", "did", "arc", "dev"]

  /// Returns whether a value can be the payload of a custom token.
  package static func canSign(_ payload: JSONValue) -> Bool {
    guard let members = payload.members, payload.levelCount <= levelLimit, payload.compact().count <= byteLimit else {
      return false
    }
    return !members.contains { name, _ in reservedClaims.contains { haveSameBytes($0, name) } }
  }
}

extension JSONValue {
  /// The largest number of levels of objects and arrays in a text.
  package static let levelLimit = 16

  /// The number of levels of objects and arrays; 0 for any other value.
  package var levelCount: Int {
    switch self {
    case .object(let members): 1 + (members.map(\.1.levelCount).max() ?? 0)
    case .array(let elements): 1 + (elements.map(\.levelCount).max() ?? 0)
    default: 0
    }
  }
}
