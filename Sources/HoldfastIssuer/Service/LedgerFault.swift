import HoldfastStorage

/// A durable record could not be read or written: nothing may be approved or issued without it.
public struct LedgerFault: Error, Equatable {
  /// What the database said; nil for another kind of record.
  public let cause: DatabaseError?

  public init(cause: DatabaseError? = nil) {
    self.cause = cause
  }
}
