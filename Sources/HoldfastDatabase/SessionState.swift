import HoldfastStorage

/// The rules that are the same for the transactions of each database.
struct SessionState {
  /// The fault of the first statement that failed.
  private(set) var fault: SQLFault?

  /// Rejects a statement after a failed one, a statement that is not a query or a change, and a text that only SQLite can store.
  mutating func begin(_ sql: StaticString, values: [Value]) throws(SQLFault) -> Dialect.StatementKind {
    if let fault { throw fault }
    for case .text(let text) in values where text.utf8.contains(0) { throw fail(.misuse) }
    guard let kind = Dialect.kind(of: sql.description) else { throw fail(.misuse) }
    return kind
  }

  /// Keeps the fault of a statement, and returns it.
  mutating func fail(_ fault: SQLFault) -> SQLFault {
    self.fault = fault
    return fault
  }

  /// Rejects every later statement.
  mutating func end() {
    if fault == nil { fault = .misuse }
  }
}
