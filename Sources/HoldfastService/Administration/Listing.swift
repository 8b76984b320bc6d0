import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastStorage

/// A table of the service as operators see it: its columns, and the statements that read it page by page.
struct Listing: Sendable {
  /// The type of a column's value in JSON.
  indirect enum Kind: Sendable {
    /// This many bytes, as hexadecimal digits.
    case id(Int)
    case text
    case number
    /// Unix seconds.
    case time
    /// Words with spaces between them, as an array.
    case words
    /// The commands of a token, a JSON text.
    case commands
    /// Names and texts, a JSON text.
    case details
    /// Texts, a JSON text.
    case texts
    /// 0 or 1.
    case flag
    /// A value that may be missing.
    case optional(Kind)
  }

  /// The order of a listing, which is that of its key, the first column, unless ``page`` has another one.
  enum Order: Sendable {
    case bytes, text
    /// The newest first.
    case descendingNumber
  }

  let name: String
  let columns: [(name: String, kind: Kind)]
  let order: Order
  /// Reads a page: `$1` is the last key of the page before, `$2` the number of rows, `$3` and the next ones the filters' values.
  let page: StaticString
  /// Reads one record, by its key `$1`.
  let one: StaticString?

  init(
    _ name: String, _ columns: KeyValuePairs<String, Kind>, by order: Order = .bytes, page: StaticString,
    one: StaticString? = nil
  ) {
    (self.name, self.order, self.page, self.one) = (name, order, page, one)
    self.columns = columns.map { ($0.key, $0.value) }
  }

  /// Converts a row into an object.
  func object(_ row: SQLRow) throws(SQLFault) -> JSONValue {
    var members: [(String, JSONValue)] = []
    for index in columns.indices {
      members.append((columns[index].name, try value(row, index, columns[index].kind)))
    }
    return .object(members)
  }

  private func value(_ row: SQLRow, _ index: Int, _ kind: Kind) throws(SQLFault) -> JSONValue {
    switch kind {
    case .optional(let kind): return try row.isNull(index) ? .null : value(row, index, kind)
    case .id:
      let bytes = try row.bytes(index)
      return .string(hexadecimal(bytes.span))
    case .text: return .string(try row.text(index))
    case .number, .time: return .integer(try row.unsigned(index))
    case .words: return Self.words(try row.text(index))
    case .flag: return .bool(try row.unsigned(index) == 1)
    case .commands, .details, .texts:
      guard let value = Self.json(try row.text(index)) else { throw .corrupt }
      return value
    }
  }

  private static func words(_ text: String) -> JSONValue {
    .array(text.split(separator: " ").map { .string(String($0)) })
  }

  private static func json(_ text: String) -> JSONValue? {
    try? JSONValue(parsing: Array(text.utf8), byteLimit: 1 << 16)
  }

  /// Converts a key in a request; nil if it cannot be one.
  func key(_ text: String) -> Value? {
    switch order {
    case .bytes: bytes(hexadecimal: text).map { .bytes($0) }
    case .text: .text(text)
    case .descendingNumber: UInt64(text).map { .unsigned($0) }
    }
  }

  /// The key of a record, as the next request for a page has it.
  func keyText(of object: JSONValue) -> String? {
    guard let key = object[columns[0].name] else { return nil }
    return key.text ?? key.number.map { String($0) }
  }

  /// The key before the first record.
  var start: Value {
    switch order {
    case .bytes: .bytes([])
    case .text: .text("")
    case .descendingNumber: .integer(.max)
    }
  }
}

/// Parses at most 512 bytes of hexadecimal digits.
func bytes(hexadecimal text: String) -> [UInt8]? {
  let digits = Array(text.utf8)
  guard digits.count <= 1024, digits.count % 2 == 0 else { return nil }
  var bytes: [UInt8] = []
  for index in stride(from: 0, to: digits.count, by: 2) {
    guard let pair = String(validating: digits[index..<index + 2], as: UTF8.self),
      pair.allSatisfy({ $0.isHexDigit }), let byte = UInt8(pair, radix: 16)
    else { return nil }
    bytes.append(byte)
  }
  return bytes
}

extension Fleet {
  /// The largest number of records in one page.
  static let pageLimit: UInt64 = 1000

  /// Returns a page of a listing: `{"items": […], "next": key or null}`.
  func page(
    _ listing: Listing, after: String? = nil, limit: UInt64 = 100, filters: [Value] = []
  ) throws(AdministrationFault) -> JSONValue {
    let limit = min(max(limit, 1), Self.pageLimit)
    var values = [listing.start, .unsigned(limit + 1)]
    if let after {
      guard let key = listing.key(after) else { throw .notFound }
      values[0] = key
    }
    values += filters
    let items: [JSONValue]
    do throws(FleetFault) {
      items = try read { (session) throws(FleetFault) in try session.objects(listing, listing.page, values) }
    } catch { throw .fleet(error) }
    return Self.page(items, limit: limit) { listing.keyText(of: $0) }
  }

  /// Returns a page of records, of which one more than its limit was looked for.
  ///
  /// - Parameter key: Returns the text of a record that ``page(_:after:limit:filters:)`` takes as `after`.
  static func page(_ found: [JSONValue], limit: UInt64, key: (JSONValue) -> String?) -> JSONValue {
    let items = Array(found.prefix(Int(limit)))
    let next = found.count > items.count ? items.last.flatMap(key) : nil
    return .object([("items", .array(items)), ("next", next.map { .string($0) } ?? .null)])
  }

  /// Returns the two columns before a page, by the key of the page before, which is 16 bytes and a text, such as `00…ff-alice`.
  static func start(_ after: String?) throws(AdministrationFault) -> [Value] {
    guard let after else { return [.bytes([]), .text("")] }
    let parts = after.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let id: AudienceID = fixedBytes(hexadecimal: String(parts[0])) else { throw .notFound }
    return [.copying(id.bytes), .text(String(parts[1]))]
  }

  /// Returns one record.
  ///
  /// - Throws: `notFound`.
  func record(_ listing: Listing, _ key: String) throws(AdministrationFault) -> JSONValue {
    guard let one = listing.one, let value = listing.key(key) else { throw .notFound }
    let items: [JSONValue]
    do throws(FleetFault) {
      items = try read { (session) throws(FleetFault) in try session.objects(listing, one, [value]) }
    } catch { throw .fleet(error) }
    guard let item = items.first else { throw .notFound }
    return item
  }
}

extension FleetSession {
  fileprivate func objects(_ listing: Listing, _ sql: StaticString, _ values: [Value]) throws(FleetFault) -> [JSONValue]
  {
    var items: [JSONValue] = []
    for row in try rows(sql, values: values) {
      items.append(try decoding { () throws(SQLFault) in try listing.object(row) })
    }
    return items
  }
}
