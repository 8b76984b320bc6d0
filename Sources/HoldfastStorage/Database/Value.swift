/// A value to bind to a parameter of an SQL statement.
public enum Value: Equatable, Sendable {
  /// A signed integer.
  case integer(Int64)
  /// An unsigned integer, at most `Int64.max`; a larger one is refused when it is bound.
  case unsigned(UInt64)
  /// A blob; SQLite copies it.
  case bytes([UInt8])
  /// UTF-8 text; SQLite copies it.
  case text(String)
  /// SQL NULL.
  case null

  /// A blob with a copy of the bytes of a span.
  ///
  /// - Parameter span: Any number of bytes.
  /// - Returns: The value.
  public static func copying(_ span: Span<UInt8>) -> Value {
    .bytes([UInt8](copying: span))
  }

  /// An integer, or NULL where there is none.
  ///
  /// - Parameter number: The number, at most `Int64.max`, or nil.
  /// - Returns: The value.
  public static func optional(_ number: UInt64?) -> Value {
    if let number { .unsigned(number) } else { .null }
  }

  /// A blob, or NULL where there is none.
  ///
  /// - Parameter bytes: The bytes, or nil.
  /// - Returns: The value.
  public static func optional(_ bytes: [UInt8]?) -> Value {
    if let bytes { .bytes(bytes) } else { .null }
  }

  /// A text, or NULL where there is none.
  ///
  /// - Parameter text: The text, or nil.
  /// - Returns: The value.
  public static func optional(_ text: String?) -> Value {
    if let text { .text(text) } else { .null }
  }
}
