import Foundation

/// The parts of a 64-bit little-endian ELF file that a test needs.
struct ElfFile {
  var data: Data

  init(_ path: String) throws { data = try Data(contentsOf: URL(filePath: path)) }

  /// Where the path of the interpreter lies, with its zero byte.
  var interpreter: Range<Int>? { segments(ofType: 3).first?.bytes }

  /// Where the bytes of the executable segment lie.
  var code: Range<Int>? { segments(ofType: 1).first { $0.flags & 1 == 1 }?.bytes }

  var interpreterPath: String? { interpreter.map { String(decoding: data[$0].dropLast(), as: UTF8.self) } }

  /// Source: elf(5): `Elf64_Phdr` is type, flags, offset, two addresses, size in the file and more.
  private func segments(ofType type: Int) -> [(flags: Int, bytes: Range<Int>)] {
    let table = integer(at: 32, count: 8)
    return (0..<integer(at: 56, count: 2)).compactMap { index in
      let header = table + index * 56
      guard integer(at: header, count: 4) == type else { return nil }
      let offset = integer(at: header + 8, count: 8)
      return (integer(at: header + 4, count: 4), offset..<offset + integer(at: header + 32, count: 8))
    }
  }

  private func integer(at offset: Int, count: Int) -> Int {
    (0..<count).reduce(0) { $0 | Int(data[offset + $1]) << (8 * $1) }
  }

  /// Writes it as a program.
  func write(to path: String) throws {
    try data.write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
  }
}
