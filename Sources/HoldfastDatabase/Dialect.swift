/// The differences between the SQL of Holdfast and that of each database.
///
/// Keywords in capitals are rewritten, except in quotes and comments:
///
/// | Holdfast | SQLite | PostgreSQL |
/// | --- | --- | --- |
/// | `$1` | `?1` | |
/// | `INTEGER`, `BLOB` | | `BIGINT`, `BYTEA` |
/// | `TEXT` in a schema | | `TEXT COLLATE "C"` |
/// | `IDENTITY` | `INTEGER PRIMARY KEY AUTOINCREMENT` | `BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY` |
/// | `STRICT`, `WITHOUT ROWID`, with a comma between | | removed |
/// | `APPEND ONLY name;` | two triggers | two triggers |
/// | `FOR UPDATE`, `FOR SHARE` and their variants | removed | |
/// | `OVERRIDING SYSTEM VALUE` | removed | |
/// | `x'00'` | | `'\x00'::BYTEA` |
package enum Dialect {
  /// Rewrites a statement or a schema for SQLite.
  package static func sqlite(_ sql: String) -> String {
    rewrite(sql) { words in
      switch words.current {
      case "IDENTITY": words.replace(1, "INTEGER PRIMARY KEY AUTOINCREMENT")
      case "APPEND" where words.next(1) == "ONLY":
        let table = words.next(2)
        words.replace(
          3,
          """
          CREATE TRIGGER \(table)_without_update BEFORE UPDATE ON \(table) BEGIN SELECT RAISE(ABORT, 'append only'); END;
          CREATE TRIGGER \(table)_without_delete BEFORE DELETE ON \(table) BEGIN SELECT RAISE(ABORT, 'append only'); END
          """)
      case "OVERRIDING" where words.next(1) == "SYSTEM" && words.next(2) == "VALUE": words.replace(3, "")
      case "FOR" where lockWordCount(words) > 0: words.replace(lockWordCount(words), "")
      default:
        if words.current.hasPrefix("$") { words.replace(1, "?" + words.current.dropFirst()) }
      }
    }
  }

  /// Rewrites a statement for PostgreSQL.
  package static func postgreSQL(_ sql: String) -> String {
    rewrite(sql) { words in postgreSQL(&words) }
  }

  /// Rewrites a script of a schema for PostgreSQL.
  package static func postgreSQLSchema(_ sql: String) -> String {
    rewrite(sql) { words in
      switch words.current {
      case "TEXT": words.replace(1, "TEXT COLLATE \"C\"")
      case "IDENTITY": words.replace(1, "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY")
      case "STRICT": words.replace(words.next(1) == "," ? 2 : 1, "")
      case "WITHOUT" where words.next(1) == "ROWID": words.replace(words.next(2) == "," ? 3 : 2, "")
      case "APPEND" where words.next(1) == "ONLY":
        let table = words.next(2)
        words.replace(
          3,
          """
          CREATE FUNCTION \(table)_append_only() RETURNS TRIGGER LANGUAGE plpgsql AS
          'BEGIN RAISE EXCEPTION ''append only'' USING ERRCODE = ''23000''; END';
          CREATE TRIGGER \(table)_append_only BEFORE UPDATE OR DELETE ON \(table)
          FOR EACH ROW EXECUTE FUNCTION \(table)_append_only();
          CREATE TRIGGER \(table)_without_truncate BEFORE TRUNCATE ON \(table)
          FOR EACH STATEMENT EXECUTE FUNCTION \(table)_append_only()
          """)
      default: postgreSQL(&words)
      }
    }
  }

  /// The kinds of statements that a session runs.
  package enum StatementKind: Equatable, Sendable {
    case query
    case change
  }

  /// Returns the kind of a statement; nil if its first word is none of SELECT, INSERT, UPDATE, DELETE and WITH.
  package static func kind(of sql: String) -> StatementKind? {
    var rest = sql[...]
    while let token = nextToken(of: &rest) {
      if token.isSpace { continue }
      switch token.text {
      case "SELECT": return .query
      case "INSERT", "UPDATE", "DELETE": return .change
      case "WITH":
        return tokens(of: sql).contains { ["INSERT", "UPDATE", "DELETE"].contains($0.text) } ? .change : .query
      default: return nil
      }
    }
    return nil
  }

  /// Returns the number of words of a lock such as `FOR UPDATE OF name SKIP LOCKED`; 0 for none.
  private static func lockWordCount(_ words: Words) -> Int {
    var count: Int
    switch (words.next(1), words.next(2), words.next(3)) {
    case ("UPDATE", _, _), ("SHARE", _, _): count = 2
    case ("KEY", "SHARE", _): count = 3
    case ("NO", "KEY", "UPDATE"): count = 4
    default: return 0
    }
    if words.next(count) == "OF" { count += 2 }
    if words.next(count) == "NOWAIT" { count += 1 } else if words.next(count) == "SKIP" { count += 2 }
    return count
  }

  private static func postgreSQL(_ words: inout Words) {
    switch words.current {
    case "INTEGER": words.replace(1, "BIGINT")
    case "BLOB": words.replace(1, "BYTEA")
    case "x" where words.following.hasPrefix("'"):
      words.replace(2, "'\\x" + words.following.dropFirst() + "::BYTEA")
    default: break
    }
  }
}

extension Dialect {
  /// A piece of SQL: a word, a quoted text, a sign, or space with comments.
  struct Token: Equatable {
    let text: Substring
    let isSpace: Bool
  }

  /// The tokens of a statement and the place in them.
  struct Words {
    fileprivate let tokens: [Token]
    fileprivate var index = 0
    fileprivate var output = ""

    /// The token that may be replaced.
    var current: String { String(tokens[index].text) }

    /// The token right behind it; empty at the end.
    var following: String { index + 1 < tokens.count ? String(tokens[index + 1].text) : "" }

    /// Returns the word that comes `count` words later; empty at the end.
    func next(_ count: Int) -> String { position(of: count).map { String(tokens[$0].text) } ?? "" }

    /// Replaces that many words, and the space between them.
    mutating func replace(_ count: Int, _ text: some StringProtocol) {
      output += text
      index = (position(of: count - 1) ?? tokens.count - 1) + 1
    }

    private func position(of count: Int) -> Int? {
      let words = tokens.indices[index...].filter { !tokens[$0].isSpace }
      return count < words.count ? words[count] : nil
    }
  }

  private static func rewrite(_ sql: String, _ change: (inout Words) -> Void) -> String {
    var words = Words(tokens: tokens(of: sql))
    while words.index < words.tokens.count {
      let token = words.tokens[words.index]
      let before = words.index
      if !token.isSpace { change(&words) }
      if words.index == before {
        words.output += token.text
        words.index += 1
      }
    }
    return words.output
  }

  private static func tokens(of sql: String) -> [Token] {
    var tokens: [Token] = []
    var rest = sql[...]
    while let token = nextToken(of: &rest) { tokens.append(token) }
    return tokens
  }

  private static func nextToken(of rest: inout Substring) -> Token? {
    guard let first = rest.unicodeScalars.first else { return nil }
    let (length, isSpace) = length(of: rest.unicodeScalars, first)
    let end = rest.unicodeScalars.index(rest.startIndex, offsetBy: length)
    defer { rest = rest[end...] }
    return Token(text: rest[..<end], isSpace: isSpace)
  }

  /// Returns the number of scalars of the first token.
  private static func length(of text: Substring.UnicodeScalarView, _ first: Unicode.Scalar) -> (Int, isSpace: Bool) {
    if first.properties.isWhitespace { return (text.prefix { $0.properties.isWhitespace }.count, true) }
    if text.starts(with: "--".unicodeScalars) { return (text.prefix { $0 != "\n" }.count, true) }
    if first == "'" || first == "\"" {
      // A doubled quote is a quote; to take it for two texts side by side changes nothing.
      return (min(text.dropFirst().prefix { $0 != first }.count + 2, text.count), false)
    }
    let word = text.prefix { $0 == "_" || $0 == "$" || $0.properties.isAlphabetic || ("0"..."9").contains($0) }
    return (max(word.count, 1), false)
  }
}
