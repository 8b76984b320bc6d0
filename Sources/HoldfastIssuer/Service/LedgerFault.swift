import HoldfastStorage

/// A durable record could not be read or written: nothing may be approved or issued without it.
public struct LedgerFault: Error, Equatable {
  /// The record's file; nil for a record that is none.
  public let file: ServiceFile?
  /// What the database said; nil for another kind of record.
  public let cause: DatabaseError?

  public init(_ file: ServiceFile? = nil, cause: DatabaseError? = nil) {
    (self.file, self.cause) = (file, cause)
  }
}
