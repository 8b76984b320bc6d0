import HoldfastCore

/// The parameters of a URI's query, by their names; none is there twice.
///
/// `name=value` and so on, with `&` between. Values are places in the query, because one of them is secret.
struct URIQuery {
  private var values: [String: Range<Int>] = [:]

  /// `malformed` for a part without `=` or name, `repeatedParameter` for a name that is there twice, known or not.
  init(_ query: Span<UInt8>) throws(ImportFault) {
    var start = 0
    while start <= query.count {
      var end = start
      while end < query.count, query[end] != 0x26 { end += 1 }
      var equals = start
      while equals < end, query[equals] != 0x3d { equals += 1 }
      guard equals < end, equals > start else { throw .malformed }
      let name = try percentDecodedText(query.extracting(start..<equals))
      guard values.updateValue(equals + 1..<end, forKey: name) == nil else { throw .repeatedParameter }
      start = end + 1
    }
  }

  /// Where the value of `name` is; nil without one.
  subscript(name: String) -> Range<Int>? { values[name] }
}
