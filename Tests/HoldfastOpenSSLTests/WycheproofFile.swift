import Glibc
import HoldfastFormats
import TestSupport

/// One file of Wycheproof, from the folder that the environment variable HOLDFAST_WYCHEPROOF names.
struct WycheproofFile {
  let tests: [WycheproofTest]

  static let folder: String? = {
    guard let value = unsafe getenv("HOLDFAST_WYCHEPROOF") else { return nil }
    return unsafe String(cString: value)
  }()

  static var isPresent: Bool { folder != nil }

  struct Unreadable: Error {}

  /// Reads a file; throws as well when it does not hold as many tests as it says.
  init(_ name: String) throws {
    let root = try JSONValue(parsing: readFile("\(Self.folder ?? "")/\(name)"), byteLimit: 1 << 20)
    guard let groups = root["testGroups"]?.elements, let count = root["numberOfTests"]?.number else {
      throw Unreadable()
    }
    tests = groups.flatMap { group in
      (group["tests"]?.elements ?? []).map { WycheproofTest(value: $0, group: group) }
    }
    guard count > 0, tests.count == count else { throw Unreadable() }
  }
}

struct WycheproofTest {
  let value: JSONValue
  let group: JSONValue

  var id: UInt64 { value["tcId"]?.number ?? 0 }
  var result: String { value["result"]?.text ?? "" }

  /// The bytes of a hexadecimal member.
  func bytes(_ name: String) throws -> [UInt8] {
    guard let text = value[name]?.text else { throw WycheproofFile.Unreadable() }
    return hex(text)
  }
}
