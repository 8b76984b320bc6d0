import HoldfastFormats

/// The table of all codes of failures and warnings, for `holdfast help errors` and the documents.
package enum FailureTable {
  /// The table as lines of Markdown.
  package static var markdown: String {
    let lines = FailureCode.allCases.map { code in
      "| \(code.rawValue) | `\(code.row.identifier)` | \(code.row.status.rawValue) | \(code.row.reason) | \(code.row.advice) |"
    }
    return (["| number | identifier | exit | reason | advice |", "| --- | --- | --- | --- | --- |"] + lines)
      .joined(separator: "\n") + "\n"
  }

  /// Prints the table.
  static func print(isJSON: Bool) {
    guard isJSON else {
      for code in FailureCode.allCases {
        let number = "\(code.rawValue)"
        Console.result("\(number.padded(to: 5))\(code.row.identifier.padded(to: 34))exit \(code.row.status.rawValue)")
        Console.result("     \(code.row.reason)")
        Console.result("     \(code.row.advice)")
      }
      for code in WarningCode.allCases {
        Console.result("\("\(code.rawValue)".padded(to: 5))\(code.row.identifier.padded(to: 34))warning")
        Console.result("     \(code.row.reason)")
        Console.result("     \(code.row.advice)")
      }
      return
    }
    let rows = FailureCode.allCases.map { code in
      JSONValue.object([
        ("number", .integer(UInt64(code.rawValue))), ("code", .string(code.row.identifier)),
        ("exit", .integer(UInt64(code.row.status.rawValue))), ("reason", .string(code.row.reason)),
        ("advice", .string(code.row.advice)),
      ])
    }
    let warnings = WarningCode.allCases.map { code in
      JSONValue.object([
        ("number", .integer(UInt64(code.rawValue))), ("code", .string(code.row.identifier)),
        ("reason", .string(code.row.reason)), ("advice", .string(code.row.advice)),
      ])
    }
    Console.result(.object([("errors", .array(rows)), ("warnings", .array(warnings))]))
  }
}
