import Foundation

/// The inputs that the fuzzer keeps in `Tests/Fuzz/Corpora`, a folder for each target.
enum Corpus {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Corpora")

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
}
