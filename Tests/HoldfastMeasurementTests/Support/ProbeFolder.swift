import Foundation
import Testing

/// A folder in which the probe has taken its baseline; removed at the end.
final class ProbeFolder {
  let path = NSTemporaryDirectory() + "hf-" + UUID().uuidString.prefix(8)
  let baseline: Measured

  /// The output of the probe: IM and DM.
  struct Measured: Equatable {
    var integrity: String
    var device: String
  }

  init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    baseline = try Self.parse(
      Programs.run(Programs.probe, ["baseline", path + "/config"], environment: Self.storage(path)))
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  static func storage(_ folder: String) -> [String: String] { ["XDG_DATA_HOME": folder + "/data"] }

  /// Has the probe measure, after these disturbances.
  func measure(
    _ disturbances: String..., program: String = Programs.probe, before: [String] = [],
    environment: [String: String] = [:], in working: String = "/"
  ) throws -> Measured {
    try Self.parse(
      run("measure", disturbances, program: program, before: before, environment: environment, in: working))
  }

  /// Runs a verb of the probe's; `before` comes before it on the command line.
  func run(
    _ verb: String, _ disturbances: [String], program: String = Programs.probe, before: [String] = [],
    environment: [String: String] = [:], in working: String = "/"
  ) throws -> (status: Int32, output: String) {
    try Programs.run(
      program, before + [verb, path + "/config"] + disturbances,
      environment: environment.merging(Self.storage(path)) { $1 }, in: working)
  }

  /// The changes when the probe was disturbed, line by line.
  func changes(
    _ disturbances: String..., program: String = Programs.probe, environment: [String: String] = [:]
  ) throws -> [String] {
    let (status, output) = try run("changes", disturbances, program: program, environment: environment)
    #expect(status == 0, "\(output)")
    return output.split(separator: "\n").map(String.init)
  }

  /// The app is another, the device the same.
  func expectChangedApp(_ measured: Measured, _ location: SourceLocation = #_sourceLocation) {
    #expect(measured.integrity != baseline.integrity, sourceLocation: location)
    #expect(measured.device == baseline.device, sourceLocation: location)
  }

  static func parse(_ result: (status: Int32, output: String)) throws -> Measured {
    let lines = result.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    let integrity = try #require(lines.first { $0[0] == "im" }, "\(result.output)")
    let device = try #require(lines.first { $0[0] == "dm" })
    return Measured(integrity: integrity[1], device: device[1])
  }
}
