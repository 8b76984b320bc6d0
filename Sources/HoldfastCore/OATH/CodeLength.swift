/// How many decimal digits a code has, 4 to 10.
///
/// Source: RFC 4226 §5.3, RFC 6287 §5.2.
public struct CodeLength: Sendable, Equatable {
  public let digits: Int

  /// Nil unless `digits` is from 4 to 10.
  public init?(_ digits: Int) {
    guard (4...10).contains(digits) else { return nil }
    self.digits = digits
  }

  private init(unchecked digits: Int) {
    self.digits = digits
  }

  public static let six = CodeLength(unchecked: 6)
  public static let eight = CodeLength(unchecked: 8)
}
