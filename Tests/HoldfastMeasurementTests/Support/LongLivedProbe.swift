import Foundation
import HoldfastLinux
import Testing

import HoldfastMeasurement

/// A probe that lives on, and measures itself again whenever a test asks.
final class LongLivedProbe {
  /// One measurement: whether the code was known, how long it took, and the beginnings of the digests of the app's components.
  struct Answer {
    var isKnown: Bool
    var microseconds: Int
    var digests: [Substring]
  }

  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  /// The measurement that the probe made when it started.
  private(set) var first = Answer(isKnown: false, microseconds: 0, digests: [])

  /// The process's id.
  var id: Int32 { process.processIdentifier }

  /// Starts `command`, which ends with the probe's path, to measure for the configuration at `path`.
  init(_ command: [String], configuration path: String, environment: [String: String]) throws {
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command + ["known", path]
    process.environment = environment.merging(["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]) { $1 }
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    first = try answer()
  }

  deinit {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  /// Has the probe disturb itself, if asked to, and then measure itself.
  func measure(_ disturbance: String = "") throws -> Answer {
    try input.fileHandleForWriting.write(contentsOf: Data((disturbance + "\n").utf8))
    return try answer()
  }

  private func answer() throws -> Answer {
    var line: [UInt8] = []
    while let byte = try output.fileHandleForReading.read(upToCount: 1)?.first, byte != 0x0a { line.append(byte) }
    let words = String(decoding: line, as: UTF8.self).split(separator: " ")
    try #require(words.count > 2, "the probe said: \(String(decoding: line, as: UTF8.self))")
    return Answer(isKnown: words[0] == "known", microseconds: Int(words[1])!, digests: Array(words[2...]))
  }
}

/// A folder of root's with a probe, and libraries that only root can change, for a user who is not root.
final class RootsProgram {
  static let user: UInt32 = 65534
  let path = "/opt/hf-" + UUID().uuidString.prefix(8)
  var probe: String { path + "/probe" }
  var library: String { path + "/lib/libcrypto.so.3" }
  var configuration: String { path + "/data/config" }
  var environment: [String: String] { ["XDG_DATA_HOME": path + "/data", "LD_LIBRARY_PATH": path + "/lib"] }
  static let asUser = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

  /// Whether the tests can make such a folder here: as root, on a file system that the conditions permit.
  static let isPossible: Bool = {
    guard geteuid() == 0, let folder = try? Descriptor(opening: "/opt", flags: O_RDONLY | O_DIRECTORY) else {
      return false
    }
    return (try? fileSystemType(of: folder.number)).map { [0xef53, 0x5846_5342].contains($0) } ?? false
  }()

  init() throws {
    try FileManager.default.createDirectory(atPath: path + "/lib", withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: path + "/data", withIntermediateDirectories: false, attributes: [.ownerAccountID: Self.user])
    try FileManager.default.copyItem(atPath: Programs.probe, toPath: probe)
    try FileManager.default.copyItem(
      atPath: URL(filePath: Programs.loaded("libcrypto.so.3")).resolvingSymlinksInPath().path, toPath: library)
    let (status, output) = try Programs.run(
      "/usr/bin/env", Self.asUser + [probe, "baseline", configuration],
      environment: environment.merging(["HOLDFAST_PROBE_POLICY": "1", "PATH": "/usr/bin:/bin"]) { $1 })
    try #require(status == 0, "\(output)")
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Starts the probe as the user; `before` comes before that on the command line.
  func start(before: [String] = [], as user: [String] = asUser, configuration: String? = nil) throws -> LongLivedProbe {
    try LongLivedProbe(
      before + user + [probe], configuration: configuration ?? self.configuration, environment: environment)
  }

  /// Starts the probe, and lets it measure itself until its files are old enough for their code to be known.
  func startKnown() throws -> (probe: LongLivedProbe, answer: LongLivedProbe.Answer) {
    let probe = try start()
    try waitForAge()
    _ = try probe.measure()
    let answer = try probe.measure()
    try #require(answer.isKnown)
    return (probe, answer)
  }

  /// Waits until the change times of all files are more than two seconds ago by the file system's clock, which no test can set.
  func waitForAge() throws {
    var changed = 0
    for path in [probe, library] {
      var status = stat()
      try #require(unsafe stat(path, &status) == 0)
      changed = max(changed, status.st_ctim.tv_sec)
    }
    while time(nil) < changed + 4 { usleep(10_000) }
  }

  /// Runs a command of root's.
  func shell(_ command: String) throws {
    let (status, output) = try Programs.run(
      "/bin/sh", ["-c", command], environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"])
    try #require(status == 0, "\(command): \(output)")
  }

  /// The last byte of the library's code in the process, behind its last instruction.
  func lastCodeOffset(in process: Int32) throws -> off_t {
    let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/\(process)/maps"))
    let map = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
    let line = try #require(map.split(separator: "\n").first { $0.contains(" r-xp ") && $0.hasSuffix(library) })
    let fields = line.split(separator: " ")
    let addresses = fields[0].split(separator: "-").map { Int($0, radix: 16)! }
    return off_t(Int(fields[2], radix: 16)! + addresses[1] - addresses[0] - 1)
  }
}
