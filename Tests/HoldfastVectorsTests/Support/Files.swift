import Glibc
import HoldfastFormats
import HoldfastVectors
import TestSupport

/// The project's `vectors` folder.
let vectorsFolder: String = {
  let parts = #filePath.split(separator: "/").dropLast(4)
  return "/" + parts.joined(separator: "/") + "/vectors"
}()

/// The folder of Wycheproof's files, from the environment.
let wycheproofFolder: String? = {
  guard let value = unsafe getenv("HOLDFAST_WYCHEPROOF") else { return nil }
  return unsafe String(cString: value)
}()

/// The names of the JSON files in a folder, sorted.
func jsonFiles(in folder: String) throws -> [String] {
  guard let directory = unsafe opendir(folder) else { throw UnreadableFile() }
  defer { unsafe closedir(directory) }
  var names: [String] = []
  while let entry = unsafe readdir(directory) {
    let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
      unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    if name.hasSuffix(".json") { names.append(name) }
  }
  return names.sorted()
}

/// Reads and replays the text of a file, and throws the first fault in it.
func replay(_ text: String) throws(VectorFault) -> Report {
  try replay(Array(text.utf8))
}

func replay(_ value: JSONValue) throws(VectorFault) -> Report {
  try replay(value.compact())
}

private func replay(_ bytes: [UInt8]) throws(VectorFault) -> Report {
  let report = try VectorFile(parsing: bytes, name: "test.json").replay()
  if let fault = report.faults.first { throw fault }
  return report
}

/// The fault of a file, and its place; nil if there is none.
func fault(in text: String) -> VectorFault? {
  do throws(VectorFault) {
    _ = try replay(text)
    return nil
  } catch { return error }
}
