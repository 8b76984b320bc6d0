/// A fault in a vector file: in the file as a whole, in a group, or in one test. The rest is replayed nevertheless.
package struct VectorFault: Error, Sendable, Equatable {
  /// The file's name, as the caller gave it.
  package let file: String
  /// The location in the file, such as `testGroups[1].tests[7].tag`; empty for the file as a whole.
  package let location: String
  /// The mistake at this location.
  package let kind: Kind
  /// The `tcId` of each test that is not replayed for this reason: that of the test that the location is in, or of all tests of the
  /// group. Empty for the file as a whole, and if the tests have none.
  package let testIDs: [UInt64]

  /// Creates a fault at a location in a file.
  package init(file: String, location: String, kind: Kind, testIDs: [UInt64] = []) {
    self.file = file
    self.location = location
    self.kind = kind
    self.testIDs = testIDs
  }

  /// Returns the same fault in the test with a `tcId`.
  func inTest(_ testID: UInt64) -> VectorFault {
    VectorFault(file: file, location: location, kind: kind, testIDs: [testID])
  }

  /// Returns the same fault in what a group's tests share.
  func inGroup(of tests: [VectorTest]) -> VectorFault {
    VectorFault(file: file, location: location, kind: kind, testIDs: tests.map { $0.id })
  }

  /// The numbers in ``testIDs`` as a person reads them, such as `7` or `1 to 5, 9`: at most eight ranges, and then how many follow.
  package var testIDText: String {
    var ranges: [ClosedRange<UInt64>] = []
    for id in testIDs.sorted() {
      if let last = ranges.last, last.upperBound + 1 == id {
        ranges[ranges.count - 1] = last.lowerBound...id
      } else {
        ranges.append(id...id)
      }
    }
    let texts = ranges.prefix(8).map {
      $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound) to \($0.upperBound)"
    }
    let rest = ranges.dropFirst(8).reduce(0) { $0 + $1.count }
    return texts.joined(separator: ", ") + (rest > 0 ? " and \(rest) others" : "")
  }

  /// The number of tests that fail by it, at least one.
  var testCount: Int { max(1, testIDs.count) }

  /// The mistakes in a file.
  package enum Kind: Sendable, Equatable {
    /// The file is not JSON or not UTF-8, or an object has a member twice.
    case notJSON
    /// The file is longer than ``VectorFile/maximumByteCount``.
    case tooLong
    /// A required member is missing.
    case missing
    /// A member has the wrong JSON type.
    case wrongType
    /// The text is not an even number of hexadecimal digits.
    case notHexadecimal
    /// The number of bytes is not the required one.
    case wrongByteCount(expected: Int, found: Int)
    /// The value has the right type but is not permitted.
    case wrongValue
    /// `numberOfTests` differs from the number of tests in all groups.
    case wrongNumberOfTests(stated: UInt64, found: Int)
    /// The file has no tests.
    case noTests
    /// Another test in the file has the same `tcId`.
    case duplicateTestID(UInt64)
    /// The `result` is not `valid`, `invalid` or `acceptable`.
    case unknownResult
    /// The schema is neither one of Holdfast nor one of Wycheproof.
    case unknownSchema
    /// The file uses one of Holdfast's schemas, which does not have the group's `type`.
    case unknownType
    /// The key does not match the private key or the key id next to it.
    case keysDiffer
  }
}
