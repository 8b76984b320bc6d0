import Glibc

/// A path taken apart into the folder and the name in it.
struct FilePath {
  /// The folder, "." where the path has none.
  let directory: String
  /// The last part.
  let name: String

  /// Refuses paths that do not end in a name.
  init(_ path: String) throws(FileError) {
    guard !path.utf8.contains(0) else { throw FileError(.other(errno: EINVAL), at: path) }
    guard !path.isEmpty else { throw FileError(.notFound, at: path) }
    if let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) {
      let folder = path.utf8[..<slash]
      directory = folder.isEmpty ? "/" : String(Substring(folder))
      name = String(Substring(path.utf8[path.utf8.index(after: slash)...]))
    } else {
      directory = "."
      name = path
    }
    guard !["", ".", ".."].contains(name) else { throw FileError(.isDirectory, at: path) }
  }

  /// A path without slashes at its end, which would make the system follow a symbolic link.
  static func withoutTrailingSlashes(_ path: String) -> String {
    var bytes = path.utf8[...]
    while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
    return String(Substring(bytes))
  }
}
