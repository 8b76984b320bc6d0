import Glibc
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastVersion

/// The benchmarks whose results a file can hold, by their verbs.
enum Benchmark: String, CaseIterable {
  case latency
  case rounds
  case measure
  case board
  case otp
}

/// The members that the results of all benchmarks have in JSON.
struct BenchRecord {
  /// The version of the format, which `bench compare` reads.
  static let format: UInt64 = 1

  private let benchmark: Benchmark
  private let start = monotonicNanoseconds()

  init(_ benchmark: Benchmark) { self.benchmark = benchmark }

  /// Returns the members for `count` operations since this was created; `measurement` tells what was hashed.
  func members(count: Int, _ measurement: LiveMeasurement?) -> [(String, JSONValue)] {
    let elapsed = max(monotonicNanoseconds() - start, 1)
    var members: [(String, JSONValue)] = [
      ("benchmark", .string(benchmark.rawValue)), ("format", .integer(Self.format)),
      ("version", .string(HoldfastVersion.description)), ("host", Self.host),
      ("elapsed_microseconds", .integer(elapsed / 1000)),
      ("rate_per_second", .integer(UInt64((Double(count) * 1e9 / Double(elapsed)).rounded()))),
    ]
    if let measurement { members.append(("bytes_hashed", .integer(HashedBytes.count(of: measurement)))) }
    return members
  }

  private static var host: JSONValue {
    var names = utsname()
    _ = unsafe uname(&names)
    func text<Characters>(_ characters: Characters) -> String {
      unsafe withUnsafeBytes(of: characters) { unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
    let information = (try? Files.readFile(at: "/proc/cpuinfo", limit: 1 << 20)) ?? []
    let lines = String(decoding: information, as: UTF8.self).split(separator: Character("\n"))
    let model = lines.first { $0.hasPrefix("model name") || $0.hasPrefix("Model") }
    // Two characters separate a name from its value.
    let name = model.map { String($0.drop { $0 != ":" }.dropFirst(2)) } ?? ""
    return .object([
      ("system", .string("\(text(names.sysname)) \(text(names.release)) \(text(names.machine))")),
      ("processor", .string(name.isEmpty ? "unknown" : name)),
      ("processors", .integer(UInt64(max(sysconf(CInt(_SC_NPROCESSORS_ONLN)), 1)))),
    ])
  }
}

/// The bytes that a measurement of this process hashes when it knows none of them: the executable file, and the code in memory.
package enum HashedBytes {
  /// Returns the number of bytes, without those for which fs-verity answered.
  static func count(of measurement: LiveMeasurement) -> UInt64 {
    var status = stat()
    let isKnown = unsafe stat("/proc/self/exe", &status) == 0
    let verity = measurement.verity
    let image = isKnown && !verity.hasImage ? UInt64(status.st_size) : 0
    guard verity.segmentCount < verity.allSegmentCount || verity.allSegmentCount == 0 else { return image }
    let map = (try? Files.readFile(at: "/proc/self/maps", limit: 16 << 20)) ?? []
    return image + code(in: String(decoding: map, as: UTF8.self))
  }

  /// Returns the bytes of the executable mappings of files, whose lines begin with `START-END r-xp` and have a path.
  /// Source: proc_pid_maps(5).
  package static func code(in map: String) -> UInt64 {
    var sum: UInt64 = 0
    for line in map.utf8.split(separator: UInt8(ascii: "\n")) where line.contains(UInt8(ascii: "/")) {
      var ends: [UInt64] = [0]
      var rest = line
      while let byte = rest.popFirst(), byte != UInt8(ascii: " ") {
        if let digit = Character(Unicode.Scalar(byte)).hexDigitValue {
          ends[ends.count - 1] = ends[ends.count - 1] << 4 | UInt64(digit)
        } else {
          ends.append(0)
        }
      }
      if ends.count == 2, ends[0] < ends[1], rest.dropFirst(2).first == UInt8(ascii: "x") { sum += ends[1] - ends[0] }
    }
    return sum
  }
}
