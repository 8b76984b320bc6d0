import CLibraryVersion
import HoldfastCore

/// The version of Holdfast's library in a program, by a text that each program with the library contains.
package enum LibraryVersion {
  private static let beginning: [UInt8] = Array("holdfast library version ".utf8)
  /// The longest version: three numbers of 5 digits, two dots and a semicolon.
  private static let byteLimit = 18

  /// The version in this program.
  package static var own: AppVersion {
    version(at: Array(HOLDFAST_LIBRARY_VERSION.utf8)[...] + [UInt8(ascii: ";")]) ?? .zero
  }

  /// Returns the version in the program at `path`; nil if it has no library, one from before versions, or one in a file of its own.
  /// Of several versions, it is the lowest.
  ///
  /// - Throws: `unreadable`.
  package static func find(inProgramAt path: String) throws(MeasurementError) -> AppVersion? {
    var lowest: AppVersion?
    try ExecutableImage.search(path, overlap: beginning.count + byteLimit) { window in
      var rest = window
      while let found = rest.firstRange(of: beginning) {
        rest = rest[found.upperBound...]
        if let version = version(at: rest.prefix(byteLimit)) { lowest = min(lowest ?? version, version) }
      }
      return false
    }
    return lowest
  }

  /// Reads three numbers of 1 to 5 digits with dots between them and a semicolon behind.
  private static func version(at bytes: ArraySlice<UInt8>) -> AppVersion? {
    guard let end = bytes.firstIndex(of: UInt8(ascii: ";")) else { return nil }
    var numbers: [UInt64] = []
    for part in bytes[..<end].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
      guard (1...5).contains(part.count), part.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
      numbers.append(part.reduce(0) { $0 * 10 + UInt64($1 - 0x30) })
    }
    guard numbers.count == 3 else { return nil }
    return AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2])
  }
}
