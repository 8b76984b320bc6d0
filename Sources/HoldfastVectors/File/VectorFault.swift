/// Why a file is not one of test vectors: it is malformed, and nothing in it was judged.
public struct VectorFault: Error, Sendable, Equatable {
  /// The file's name, as the caller gave it.
  public let file: String
  /// Where in the file, such as `testGroups[1].tests[7].tag`; empty for the file as a whole.
  public let location: String
  /// What is wrong there.
  public let kind: Kind

  /// A fault at a place of a file.
  public init(file: String, location: String, kind: Kind) {
    self.file = file
    self.location = location
    self.kind = kind
  }

  /// What can be wrong with a file.
  public enum Kind: Sendable, Equatable {
    /// Not JSON, not UTF-8, or an object names a member twice.
    case notJSON
    /// More bytes than ``VectorFile/maximumByteCount``.
    case tooLong
    /// A member that the file must have is not there.
    case missing
    /// A member of another JSON type than belongs there.
    case wrongType
    /// Text that is not an even number of hexadecimal digits.
    case notHexadecimal
    /// As many bytes as belong there, and no others.
    case wrongByteCount(expected: Int, found: Int)
    /// A value of the right type that cannot stand there.
    case wrongValue
    /// `numberOfTests` is not the number of tests in all groups.
    case wrongNumberOfTests(stated: UInt64, found: Int)
    /// There is nothing to replay.
    case noTests
    /// A `tcId` that another test of the file has too.
    case duplicateTestID(UInt64)
    /// A `result` other than `valid`, `invalid` and `acceptable`.
    case unknownResult
    /// A group's `type` that the file's schema, one of Holdfast's own, does not have.
    case unknownType
    /// A key that does not belong to the private key or the key id beside it.
    case keysDiffer
  }
}
