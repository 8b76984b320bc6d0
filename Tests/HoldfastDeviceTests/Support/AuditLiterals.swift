import HoldfastCore

extension AuditEntry {
  var encoded: [UInt8] {
    var bytes: [UInt8] = []
    encode(into: &bytes)
    return bytes
  }
}

extension UnauthenticatedTotals: ExpressibleByDictionaryLiteral {
  /// Lets tests write totals as literals.
  public init(dictionaryLiteral elements: (Status, UInt64)...) {
    self.init()
    for (status, count) in elements { self[status] = count }
  }
}
