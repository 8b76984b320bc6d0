#if Service
import HoldfastCore
import HoldfastFormats
import HoldfastService

/// A member of a record as templates read it.
struct CellView {
  let label: String
  var text = ""
  /// The address of the record that the value names.
  var link: String?
  /// A time as programs read it.
  var machineTime: String?
  /// The style of a state.
  var badge: String?
  /// Whether the value is an id, a digest or a code.
  var isCode = false
  /// Whether there is no value.
  var isNone = false
  /// Names and texts.
  var pairs: [PairView]?
}

/// A name and a text.
struct PairView {
  let key: String
  let text: String
}

/// Makes cells from the members of records: dates from times, links from ids.
struct CellMaker: Sendable {
  /// Unix seconds.
  let now: UInt64
  /// The operator who sees the cells.
  let caller: Operator
  /// The labels of the registered devices among those that the records name, by id; empty for a device without a label.
  let devices: [String: String]
  /// Whether ids are shortened.
  let isShort: Bool

  /// The kinds of the records that members name.
  private static let kinds = [
    "device": "devices", "prover": "provers", "token": "tokens", "user": "users", "image": "images",
    "code": "codes", "signer": "keys", "key": "keys", "introducer": "keys",
  ]

  /// Returns the cells of a list's row, or of a record.
  ///
  /// - Parameters:
  ///   - names: The members, in order; `state` stands for the state of the record.
  ///   - kind: The kind of the record, whose key leads to its page.
  func cells(_ record: JSONValue, _ names: [String], _ kind: ConsoleKind, _ schema: [Schema.Property]) -> [CellView] {
    names.enumerated().map { index, name in
      if name == "state" {
        guard let state = RecordState(record, at: now) else { return CellView(label: "State", isNone: true) }
        return CellView(label: "State", text: state.word, badge: state.style)
      }
      if name == "version", let numbers = Self.version(record) { return CellView(label: "Version", text: numbers) }
      let property = schema.first { $0.name == name }
      var cell = cell(name, record[name] ?? .null, property?.schema ?? .text(0...0))
      if kind.unlinked.contains(name) { cell.link = nil }
      if name == "object" { cell.link = changed(record) }
      if index == 0, isShort, let key = record[name]?.text, let link = address(key, in: kind.path) {
        cell.link = link
      }
      return cell
    }
  }

  private func cell(_ name: String, _ value: JSONValue, _ schema: Schema) -> CellView {
    var cell = CellView(label: name.words)
    switch (value, schema.inner) {
    case (.null, _), (.string(""), _): cell.isNone = true
    case (.integer(let seconds), .time): (cell.text, cell.machineTime) = Self.date(seconds)
    case (.integer(let number), _): cell.text = String(number)
    case (.bool(let flag), _): cell.text = flag ? "yes" : "no"
    case (.array(let elements), _):
      cell.text = elements.map { $0.text ?? $0.number.map { String($0) } ?? "" }.joined(separator: ", ")
      cell.isNone = elements.isEmpty
    case (.object(let members), _):
      cell.pairs = members.map { PairView(key: $0.0.words, text: $0.1.text ?? "") }
      cell.isNone = members.isEmpty
    case (.string(let text), let schema):
      cell.text = text
      let isIdentifier = text.utf8.count >= 32 && text.utf8.allSatisfy { hexadecimalValue($0) != nil }
      if case .hexadecimal = schema { cell.isCode = true }
      if isIdentifier {
        cell.isCode = true
        if isShort { cell.text = text.prefix(8) + "…" }
      }
      // Names of changes, such as token.revoke.
      if name == "action" { cell.text = text.replacing(".", with: " ") }
      cell.link = Self.kinds[name].flatMap { address(text, in: $0) }
      if name == "device" {
        if let label = devices[text], !label.isEmpty { (cell.text, cell.isCode) = (label, false) }
        if devices[text] == nil { cell.link = nil }
      }
    }
    return cell
  }

  /// The address of a record's page, if there is one that the operator may see.
  private func address(_ key: String, in kind: String) -> String? {
    guard let show = AdministrationOperation.show(kind), caller.scopes.contains(show.scope) else { return nil }
    return show.address(key)
  }

  /// The address of the record that a change was about: `token.revoke` changes one of the tokens.
  private func changed(_ record: JSONValue) -> String? {
    guard let action = record["action"]?.text, let key = record["object"]?.text, !key.isEmpty else { return nil }
    return address(key, in: action.prefix { $0 != "." } + "s")
  }

  /// The version in three numbers, which are separate members of an image.
  private static func version(_ record: JSONValue) -> String? {
    let numbers =
      record["version"]?.elements?.compactMap(\.number)
      ?? ["major", "minor", "patch"].compactMap { record[$0]?.number }
    return numbers.count == 3 ? numbers.map { String($0) }.joined(separator: ".") : nil
  }

  /// Returns a time as people read it, and as programs do.
  static func date(_ seconds: UInt64) -> (String, String) {
    let machine = Timestamp(unixSeconds: seconds).description
    let text = machine.replacing("T", with: " ").dropLast(4) + " UTC"
    return (String(text), machine)
  }
}
#endif
