import Foundation

/// A temporary folder, which is removed with its contents when the test ends.
package final class TemporaryFolder: Sendable {
  package let path: String

  package init(in directory: String = NSTemporaryDirectory()) throws {
    var template = Array((directory + "/holdfast-XXXXXX").utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  /// Returns the path of a name in the folder.
  package func file(_ name: String) -> String { path + "/" + name }

  /// Creates a file with exactly these contents and this mode.
  @discardableResult
  package func makeFile(_ name: String, _ bytes: [UInt8] = [], mode: Int = 0o600) throws -> String {
    guard FileManager.default.createFile(atPath: file(name), contents: Data(bytes)) else { throw POSIXError(.EIO) }
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file(name))
    return file(name)
  }

  package func contents(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: file(name))))
  }

  package func mode(_ name: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: file(name))
    return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? -1
  }

  package func setMode(_ name: String, _ mode: Int) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file(name))
  }

  /// All names in the folder, sorted.
  package func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
}
