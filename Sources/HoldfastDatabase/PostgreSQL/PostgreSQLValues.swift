import CPostgreSQL
import HoldfastStorage

/// The numbers of the server's types.
///
/// Source: PostgreSQL 15, `pg_type.dat`.
private enum TypeNumber {
  static let boolean: Oid = 16
  static let bytes: Oid = 17
  static let name: Oid = 19
  static let integer8: Oid = 20
  static let integer2: Oid = 21
  static let integer4: Oid = 23
  static let text: Oid = 25
  static let unknown: Oid = 705
  static let varchar: Oid = 1043
  static let numeric: Oid = 1700
}

/// A statement with its values.
struct PostgreSQLStatement {
  let sql: StaticString
  let values: PostgreSQLValues

  /// - Throws: `misuse` for a number above `Int64.max`, and for a statement that is no literal.
  init(_ sql: StaticString, _ values: [Value] = []) throws(SQLFault) {
    guard sql.hasPointerRepresentation else { throw .misuse }
    self.sql = sql
    self.values = try PostgreSQLValues(values)
  }
}

/// The values of a statement in the server's binary format: integers are big-endian.
struct PostgreSQLValues {
  /// The type of each value; 0 leaves the choice to the server.
  let types: [Oid]
  private var content: [UInt8] = []
  private var ranges: [Range<Int>?] = []

  /// Encodes values.
  ///
  /// - Throws: `misuse` for a number above `Int64.max`.
  init(_ values: [Value]) throws(SQLFault) {
    types = values.map { value in
      switch value {
      case .integer, .unsigned: TypeNumber.integer8
      case .bytes: TypeNumber.bytes
      case .text: TypeNumber.text
      case .null: 0
      }
    }
    for value in values {
      let start = content.count
      switch value {
      case .integer(let number): append(number)
      case .unsigned(let number):
        guard let signed = Int64(exactly: number) else { throw .misuse }
        append(signed)
      case .bytes(let bytes): content += bytes
      case .text(let text): content += text.utf8
      case .null: break
      }
      ranges.append(value == .null ? nil : start..<content.count)
    }
    // The address of an empty value must not be null.
    content.append(0)
  }

  private mutating func append(_ number: Int64) {
    for shift in stride(from: 56, through: 0, by: -8) { content.append(UInt8(truncatingIfNeeded: number >> shift)) }
  }

  /// Calls `body` with the addresses, lengths and formats for libpq, which are valid during the call.
  func withParameters<Result>(
    _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> Result
  ) -> Result {
    let lengths = ranges.map { Int32(clamping: $0?.count ?? 0) }
    let formats = [Int32](repeating: 1, count: ranges.count)
    return unsafe content.withUnsafeBytes { content in
      let addresses = unsafe ranges.map { range -> UnsafePointer<CChar>? in
        guard let range else { return nil }
        return unsafe content.baseAddress!.advanced(by: range.lowerBound).assumingMemoryBound(to: CChar.self)
      }
      return unsafe body(addresses, lengths, formats)
    }
  }
}

/// The result of a statement.
@safe final class PostgreSQLResult {
  private let handle: OpaquePointer

  /// Takes over a result, and clears it on release.
  init(adopting handle: OpaquePointer) {
    unsafe self.handle = handle
  }

  deinit {
    unsafe PQclear(handle)
  }

  /// The failure of the statement; nil if it succeeded.
  var failure: PostgreSQLFailure? {
    switch unsafe PQresultStatus(handle) {
    case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: return nil
    default:
      let isError = unsafe errorField(holdfast_severity, of: handle) == "ERROR"
      let code = unsafe errorField(holdfast_sql_state, of: handle)
      return PostgreSQLFailure(fault: code.map { SQLFault(sqlState: $0) } ?? .unavailable, isConnectionLost: !isError)
    }
  }

  /// Whether this is the end of a pipeline.
  var endsPipeline: Bool { unsafe PQresultStatus(handle) == PGRES_PIPELINE_SYNC }

  /// The name of the command that was carried out.
  var command: String { unsafe String(cString: PQcmdStatus(handle)) }

  /// The number of rows that an INSERT, UPDATE or DELETE changed.
  var changedRowCount: Int { unsafe Int(String(cString: PQcmdTuples(handle))) ?? 0 }

  /// Returns the rows of a result in binary format.
  ///
  /// - Throws: `misuse` for a column of a type that ``Value`` does not have; `corrupt` for a text that is not UTF-8.
  func rows() throws(SQLFault) -> [SQLRow] {
    var rows: [SQLRow] = []
    let (rowCount, columnCount) = unsafe (PQntuples(handle), PQnfields(handle))
    for row in 0..<rowCount {
      var columns: [Value] = []
      for column in 0..<columnCount { columns.append(try value(row, column)) }
      rows.append(SQLRow(columns))
    }
    return rows
  }

  /// Returns a column of the first row of a result in text format; nil if there is no row, or for NULL.
  func text(_ column: Int32) -> String? {
    guard unsafe PQntuples(handle) > 0, unsafe PQgetisnull(handle, 0, column) == 0 else { return nil }
    return unsafe String(cString: PQgetvalue(handle, 0, column))
  }

  private func value(_ row: Int32, _ column: Int32) throws(SQLFault) -> Value {
    guard unsafe PQgetisnull(handle, row, column) == 0 else { return .null }
    let content = unsafe UnsafeRawBufferPointer(
      start: PQgetvalue(handle, row, column), count: Int(PQgetlength(handle, row, column)))
    switch unsafe PQftype(handle, column) {
    case TypeNumber.bytes: return unsafe .bytes([UInt8](content))
    case TypeNumber.text, TypeNumber.varchar, TypeNumber.name, TypeNumber.unknown:
      guard let text = unsafe String(validating: content, as: UTF8.self) else { throw .corrupt }
      return .text(text)
    case TypeNumber.integer8, TypeNumber.integer4, TypeNumber.integer2:
      guard let number = unsafe bigEndianInteger([UInt8](content)) else { throw .corrupt }
      return .integer(number)
    case TypeNumber.boolean: return unsafe .integer(content.first == 0 ? 0 : 1)
    case TypeNumber.numeric:
      guard let number = unsafe wholeNumber([UInt8](content)) else { throw .misuse }
      return .integer(number)
    default: throw .misuse
    }
  }
}

/// Returns a signed integer of 1 to 8 bytes.
private func bigEndianInteger(_ bytes: [UInt8]) -> Int64? {
  guard let first = bytes.first, bytes.count <= 8 else { return nil }
  return bytes.dropFirst().reduce(Int64(Int8(bitPattern: first))) { $0 << 8 | Int64($1) }
}

/// Returns a number of type `numeric`, which is the type of a sum; nil if it is not whole or does not fit.
///
/// Source: PostgreSQL 15, `numeric_send`: the count of digits to base 10,000, the weight of the first, the sign, the count of
/// decimal places, the digits; 16 bits each.
private func wholeNumber(_ bytes: [UInt8]) -> Int64? {
  guard bytes.count >= 8, bytes.count % 2 == 0 else { return nil }
  let words = stride(from: 0, to: bytes.count, by: 2).map { Int64(bytes[$0]) << 8 | Int64(bytes[$0 + 1]) }
  let weight = Int(Int16(truncatingIfNeeded: words[1]))
  let digits = words.dropFirst(4)
  guard words[2] == 0 || words[2] == 0x4000, digits.count <= weight + 1, weight < 5 else { return nil }
  // Negative numbers have one more value.
  var number: Int64 = 0
  for index in 0..<max(weight + 1, 0) {
    let digit = index < digits.count ? digits[digits.startIndex + index] : 0
    let (shifted, shiftOverflows) = number.multipliedReportingOverflow(by: 10_000)
    let (sum, sumOverflows) = shifted.subtractingReportingOverflow(digit)
    guard !shiftOverflows, !sumOverflows else { return nil }
    number = sum
  }
  if words[2] != 0 { return number }
  return number == .min ? nil : -number
}
