import Foundation

/// The inputs that the fuzzer keeps in `Tests/Fuzz/Corpora`, a folder for each target.
enum Corpus {
  private static let fuzz = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  private static let folder = fuzz.appendingPathComponent("Corpora")

  /// The names of the folders, sorted.
  static func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
  }

  /// The inputs of one target, by the names of their files.
  static func inputs(of name: String) throws -> [(file: String, bytes: [UInt8])] {
    let inputs = folder.appendingPathComponent(name)
    return try FileManager.default.contentsOfDirectory(atPath: inputs.path).sorted().map { file in
      (file, [UInt8](try Data(contentsOf: inputs.appendingPathComponent(file))))
    }
  }

  /// The verdicts that were kept on the inputs of one target, by the names of their files.
  static func verdicts(of name: String) throws -> [String: String] {
    let lines = try String(contentsOf: fuzz.appendingPathComponent("Verdicts/\(name)"), encoding: .utf8)
    return Dictionary(
      uniqueKeysWithValues: lines.split(separator: "\n").filter { !$0.hasPrefix("limits") }.map { line in
        let parts = line.split(separator: " ")
        return (String(parts[0]), String(parts[1]))
      })
  }

  /// By file below `Sources`, the declarations that `fuzz.py coverage` does not count, each with the reason.
  static func notCounted() throws -> [String: [String: String]] {
    let table = try Data(contentsOf: fuzz.appendingPathComponent("no-readers.json"))
    return try JSONDecoder().decode([String: [String: String]].self, from: table)
  }

  /// The text of a file below `Sources`.
  static func source(_ file: String) throws -> String {
    let sources = fuzz.deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Sources")
    return String(decoding: try Data(contentsOf: sources.appendingPathComponent(file)), as: UTF8.self)
  }
}
