/// How many decimal digits a code has, 4 to 10.
///
/// Source: RFC 4226 §5.3, RFC 6287 §5.2.
public struct CodeLength: Sendable, Equatable {
  private let count: UInt8

  public var digits: Int { Int(count) }

  /// Nil unless `digits` is from 4 to 10.
  public init?(_ digits: Int) {
    guard (4...10).contains(digits) else { return nil }
    count = UInt8(digits)
  }

  private init(unchecked digits: UInt8) {
    count = digits
  }

  public static var six: CodeLength { CodeLength(unchecked: 6) }
  public static var eight: CodeLength { CodeLength(unchecked: 8) }
}
