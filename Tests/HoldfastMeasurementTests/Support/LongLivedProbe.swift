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
    return Answer(
      isKnown: words[0] == "known", microseconds: try #require(Int(words[1])), digests: Array(words[2...]))
  }
}
