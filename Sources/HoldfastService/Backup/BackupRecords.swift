import HoldfastCore
import HoldfastStorage

/// The encrypted contents of a backup: a beginning, the tables with their rows, and an end.
///
/// Numbers are big-endian. The beginning is the version of the schema and the time in Unix seconds, 8 bytes each. A table is the
/// byte `T`, the length of its name in one byte, and the name. A row is the byte `R`, the number of its values in one byte, and the
/// values: 0 for NULL; 1 and 8 bytes for an integer; 2 for a text and 3 for bytes, with their length in 4 bytes. The end is the byte
/// `E` and the number of all rows, 8 bytes.
package enum BackupRecord: Equatable {
  case table(String)
  case row([Value])
  case end(rowCount: UInt64)

  /// The largest text or blob, in bytes.
  static let valueLimit = 1 << 24

  /// Appends the encoded record.
  package func append(to bytes: inout [UInt8]) {
    switch self {
    case .table(let name):
      bytes += [UInt8(ascii: "T"), UInt8(name.utf8.count)] + Array(name.utf8)
    case .row(let values):
      bytes += [UInt8(ascii: "R"), UInt8(values.count)]
      for value in values { Self.append(value, to: &bytes) }
    case .end(let rowCount):
      bytes.append(UInt8(ascii: "E"))
      Self.append(rowCount, byteCount: 8, to: &bytes)
    }
  }

  static func append(_ number: UInt64, byteCount: Int, to bytes: inout [UInt8]) {
    for index in 0..<byteCount { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * (byteCount - 1 - index)))) }
  }

  private static func append(_ value: Value, to bytes: inout [UInt8]) {
    switch value {
    case .null: bytes.append(0)
    case .integer(let number):
      bytes.append(1)
      append(UInt64(bitPattern: number), byteCount: 8, to: &bytes)
    case .unsigned(let number):
      bytes.append(1)
      append(number, byteCount: 8, to: &bytes)
    case .text(let text):
      bytes.append(2)
      append(UInt64(text.utf8.count), byteCount: 4, to: &bytes)
      bytes += Array(text.utf8)
    case .bytes(let content):
      bytes.append(3)
      append(UInt64(content.count), byteCount: 4, to: &bytes)
      bytes += content
    }
  }
}

/// Writes a backup, chunk by chunk.
package final class BackupWriter {
  private let sealing: BackupSealing
  private var pending: [UInt8] = []
  private var rowCount: UInt64 = 0
  private let write: ([UInt8]) -> Bool

  /// - Parameter write: Appends bytes to the file, and returns whether it could.
  package init(
    _ sealing: BackupSealing, version: Int, moment: UInt64,
    write: @escaping ([UInt8]) -> Bool
  ) throws(BackupFault) {
    self.sealing = sealing
    self.write = write
    guard write(sealing.header) else { throw .file }
    BackupRecord.append(UInt64(version), byteCount: 8, to: &pending)
    BackupRecord.append(moment, byteCount: 8, to: &pending)
  }

  package func append(_ record: BackupRecord) throws(BackupFault) {
    if case .row = record { rowCount += 1 }
    record.append(to: &pending)
    // A chunk that others follow is full; the last one may be.
    while pending.count > BackupSealing.chunkByteCount { try writeChunk(isLast: false) }
  }

  /// Writes the end.
  package func finish() throws(BackupFault) -> UInt64 {
    try append(.end(rowCount: rowCount))
    try writeChunk(isLast: true)
    return rowCount
  }

  private func writeChunk(isLast: Bool) throws(BackupFault) {
    let chunk = Array(pending.prefix(BackupSealing.chunkByteCount))
    pending.removeFirst(chunk.count)
    let sealed: [UInt8]
    do throws(CryptographyFailure) { sealed = try sealing.seal(chunk, isLast: isLast) } catch {
      throw .fleet(.cryptography)
    }
    guard write(sealed) else { throw .file }
  }
}

/// Reads a backup, chunk by chunk. What it returns was written so, in this order; whether the backup is complete is known at its
/// end.
package final class BackupReader {
  /// The version of the schema.
  package let version: UInt64
  /// The time of the backup, in Unix seconds.
  package let moment: UInt64
  private let sealing: BackupSealing
  private var buffer: [UInt8] = []
  private var position = 0
  private var ahead: [UInt8]
  private var isAtEnd = false
  private var rowCount: UInt64 = 0
  private let read: (Int) -> [UInt8]?

  /// - Parameter read: Returns the next bytes of the file, as many as asked for except at its end; nil if it cannot be read.
  package init(
    with serviceKey: borrowing ServiceKey, read: @escaping (Int) -> [UInt8]?
  ) throws(BackupFault) {
    guard let header = read(BackupSealing.headerByteCount) else { throw .file }
    let sealing = try BackupSealing.reading(header, with: serviceKey)
    let sealedByteCount = BackupSealing.chunkByteCount + BackupSealing.tagByteCount
    guard let first = read(sealedByteCount), let ahead = read(sealedByteCount) else { throw .file }
    let buffer: [UInt8]
    do throws(CryptographyFailure) { buffer = try sealing.open(first, isLast: ahead.isEmpty) } catch { throw .damaged }
    guard buffer.count >= 16 else { throw .damaged }
    version = Self.number(buffer[0..<8])
    moment = Self.number(buffer[8..<16])
    (self.buffer, self.ahead, isAtEnd, self.read) = (buffer, ahead, ahead.isEmpty, read)
    self.sealing = sealing
    position = 16
  }

  /// Returns the next record; the end is returned only once, and only if nothing follows it.
  package func next() throws(BackupFault) -> BackupRecord {
    let kind = try byte()
    if kind == UInt8(ascii: "T") {
      let name = try text(Int(try byte()))
      return .table(name)
    }
    if kind == UInt8(ascii: "R") {
      let count = Int(try byte())
      var values: [Value] = []
      while values.count < count { values.append(try value()) }
      rowCount += 1
      return .row(values)
    }
    guard kind == UInt8(ascii: "E") else { throw .damaged }
    let count = try number(8)
    guard count == rowCount, isAtEnd, position == buffer.count else { throw .damaged }
    return .end(rowCount: count)
  }

  private func value() throws(BackupFault) -> Value {
    let kind = try byte()
    if kind == 0 { return .null }
    if kind == 1 {
      let number = try number(8)
      return .integer(Int64(bitPattern: number))
    }
    let count = try length()
    let bytes = try take(count)
    if kind == 3 { return .bytes(bytes) }
    guard kind == 2, let text = String(validating: bytes, as: UTF8.self) else { throw .damaged }
    return .text(text)
  }

  private func length() throws(BackupFault) -> Int {
    let length = Int(try number(4))
    guard length <= BackupRecord.valueLimit else { throw .damaged }
    return length
  }

  private func text(_ count: Int) throws(BackupFault) -> String {
    guard let text = String(validating: try take(count), as: UTF8.self) else { throw .damaged }
    return text
  }

  private func number(_ byteCount: Int) throws(BackupFault) -> UInt64 {
    let bytes = try take(byteCount)
    return Self.number(bytes[...])
  }

  private func byte() throws(BackupFault) -> UInt8 { try take(1)[0] }

  private func take(_ count: Int) throws(BackupFault) -> [UInt8] {
    while buffer.count - position < count { try fill() }
    defer { position += count }
    return Array(buffer[position..<position + count])
  }

  /// Decrypts the next chunk.
  private func fill() throws(BackupFault) {
    guard !isAtEnd else { throw .damaged }
    let sealed = ahead
    guard let following = read(BackupSealing.chunkByteCount + BackupSealing.tagByteCount) else { throw .file }
    ahead = following
    isAtEnd = ahead.isEmpty
    let chunk: [UInt8]
    do throws(CryptographyFailure) { chunk = try sealing.open(sealed, isLast: isAtEnd) } catch { throw .damaged }
    buffer.removeFirst(position)
    position = 0
    buffer += chunk
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}
