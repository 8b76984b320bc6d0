/// Where a given code was found.
public enum CodeMatch: Sendable, Equatable {
  /// Nowhere.
  case none
  /// Where it is enough.
  case near(position: UInt64)
  /// Further off: it counts only after the code before it.
  case far(position: UInt64)
}

/// What comparing a user's codes gave; nil for one that was not compared.
public struct CodeMatches: Sendable, Equatable {
  /// Whose codes they were compared with.
  public let userID: UInt64
  public var otp: CodeMatch?
  public var seal: CodeMatch?

  public init(userID: UInt64) {
    self.userID = userID
  }
}
