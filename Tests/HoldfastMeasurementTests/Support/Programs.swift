import Foundation
import Testing

/// The programs that were built with the tests.
enum Programs {
  /// The folder of the running tests.
  static let folder: String = {
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe readlink("/proc/self/exe", &path, path.count - 1)
    let program = String(decoding: path[..<max(count, 0)].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return URL(filePath: program).deletingLastPathComponent().path
  }()

  static let probe = folder + "/MeasurementProbe"
  static let readmeProver = folder + "/ReadmeProver"

  /// The path of a library of this process's, as the kernel's map has it.
  static func loaded(_ name: String) throws -> String {
    let map = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/maps")).readToEnd() ?? Data()
    let line = String(decoding: map, as: UTF8.self).split(separator: "\n").first { $0.hasSuffix("/" + name) }
    return try #require(line.map { String($0[$0.firstIndex(of: "/")!...]) })
  }

  /// Runs a program to its end, with no other environment than `environment`; returns its status and what it printed.
  static func run(
    _ program: String, _ arguments: [String], environment: [String: String] = [:], in folder: String = "/"
  ) throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    process.environment = environment
    process.currentDirectoryURL = URL(filePath: folder)
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: output, as: UTF8.self))
  }
}
