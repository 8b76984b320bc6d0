#if Service
import HoldfastFormats
import HoldfastService

/// A field of a form, for a member of an operation's body or a parameter of its query.
struct FormField: Sendable {
  private let property: Schema.Property

  init(_ property: Schema.Property) { self.property = property }

  var name: String { property.name }

  /// Whether a person has to fill it in. The console asks for a reason even where the operation does not.
  var isRequired: Bool { property.isRequired || name == "reason" }

  /// Whether the text is a span of time, such as `90d`, for seconds.
  private var isSpan: Bool { name.hasSuffix("_seconds") }

  /// The name as the page shows it.
  var label: String { isSpan ? String(name.dropLast("_seconds".count)).words + " for" : name.words }

  /// The form without names and null.
  private var schema: Schema { property.schema.inner }

  /// Returns the field as the page shows it.
  ///
  /// - Parameter values: What it contains at first.
  func view(_ values: [String] = []) -> FieldView {
    var view = FieldView(
      name: name, label: label, hint: hint, value: values.first ?? "", isRequired: isRequired)
    switch schema {
    case .object, .map: view.kind = .area
    case .choice(let texts):
      view.kind = .choice
      view.options = [OptionView(text: "", label: "any", isSelected: view.value.isEmpty)]
      view.options += texts.map { OptionView(text: $0, label: $0, isSelected: $0 == view.value) }
    case .array(.choice(let texts), _):
      view.kind = .checks
      view.options = texts.map { OptionView(text: $0, label: $0, isSelected: values.contains($0)) }
    case .flag:
      view.kind = .choice
      view.options = ["", "true", "false"].map { text in
        OptionView(text: text, label: text.isEmpty ? "any" : text, isSelected: text == view.value)
      }
    case .anyText: view.kind = .area
    case .time: view.kind = .time
    case .text(let counts): view.length = counts.upperBound
    case .hexadecimal(let count) where name == "root":
      view.kind = .secret
      view.length = count
    case .integer where !isSpan: view.kind = .number
    default: break
    }
    return view
  }

  private var hint: String {
    let optional = isRequired || property.summary.hasPrefix("Only ") ? "" : " Optional."
    switch schema {
    case .integer where isSpan: return property.summary + " A number with d, h, m or s, such as 90d." + optional
    case .array(.text, _): return property.summary + " With commas between them." + optional
    case .time: return property.summary + " In UTC." + optional
    case .hexadecimal where name == "device": return property.summary + " Its id or its label." + optional
    case .object, .map: return property.summary + " JSON."
    default: return property.summary + optional
    }
  }

  /// Converts what a person entered into the member's value; nil if the field is empty. A text that cannot be converted stays a
  /// text, and the operation says what is wrong with it.
  func value(_ texts: [String], in fleet: Fleet) throws(AdministrationFault) -> JSONValue? {
    if case .array(.choice, _) = schema { return .array(texts.map { .string($0) }) }
    guard let text = texts.first.map({ Self.trimmed($0) }), !text.isEmpty else { return nil }
    switch schema {
    case .integer where isSpan: return spanSeconds(text).map { .integer($0) } ?? .string(text)
    case .integer: return UInt64(text).map { .integer($0) } ?? .string(text)
    case .flag: return ["true": .bool(true), "false": .bool(false)][text] ?? .string(text)
    case .time: return Self.time(text).map { .integer($0.unixSeconds) } ?? .string(text)
    case .array(.text, _): return .array(Self.items(text, ",").map { .string($0) })
    case .array(.integer, _):
      return .array(Self.items(text, ".").map { part in UInt64(part).map { .integer($0) } ?? .string(part) })
    case .object, .map:
      let bytes = Array(text.utf8)
      do throws(JSONMistake) { return try JSONMember(parsing: bytes).value } catch { throw .mistake(error) }
    case .hexadecimal where name == "device":
      do throws(AdministrationFault) { return .string(try fleet.deviceID(named: text)) } catch {
        guard case .notFound = error else { throw error }
        throw .mistake(JSONMistake(at: [.member(name)], expected: .form("the id or the label of one device")))
      }
    default: return .string(text)
    }
  }

  /// Returns a mistake in this member with its label and, for a span, in the form that a person enters; nil if the mistake is
  /// elsewhere.
  func words(for mistake: JSONMistake) -> JSONMistake? {
    guard case .member(name)? = mistake.path.first else { return nil }
    var expectation = mistake.expectation
    if isSpan, case .integer(let seconds) = expectation {
      expectation = .form("a time of \(seconds.lowerBound)s to \(seconds.upperBound / 86_400)d, such as 90d")
    }
    return JSONMistake(at: [.member(label)] + mistake.path.dropFirst(), expected: expectation)
  }

  private static func items(_ text: String, _ separator: Character) -> [String] {
    text.split(separator: separator, omittingEmptySubsequences: separator == ",").map { trimmed(String($0)) }
  }

  /// A browser sends a date and time without a zone, and often without seconds.
  private static func time(_ text: String) -> Timestamp? {
    Timestamp(parsing: text) ?? Timestamp(parsing: text + "Z") ?? Timestamp(parsing: text + ":00Z")
  }

  private static func trimmed(_ text: String) -> String {
    let blanks: Set<Unicode.Scalar> = [" ", "\t", "\r", "\n"]
    let kept = text.unicodeScalars.drop { blanks.contains($0) }
    guard let last = kept.lastIndex(where: { !blanks.contains($0) }) else { return "" }
    return String(kept[...last])
  }

  /// The texts with which a field begins that changes a value.
  static func texts(of value: JSONValue?) -> [String] {
    switch value {
    case .string(let text)?: [text]
    case .integer(let number)?: [String(number)]
    case .array(let elements)?: [elements.compactMap(\.text).joined(separator: ", ")]
    case .object?: [String(decoding: value?.pretty() ?? [], as: UTF8.self)]
    default: []
    }
  }
}

extension Schema {
  /// The form behind a name, and of a value that may be null.
  var inner: Schema {
    switch self {
    case .named(_, let schema), .nullable(let schema): schema.inner
    default: self
    }
  }
}

/// A field as templates read it.
struct FieldView {
  enum Kind { case line, area, choice, checks, time, secret, number }

  let name: String
  let label: String
  let hint: String
  var value: String
  let isRequired: Bool
  var length = 4096
  var options: [OptionView] = []
  var kind = Kind.line {
    didSet {
      isArea = kind == .area
      isChoice = kind == .choice
      isGroup = kind == .checks
      type =
        switch kind {
        case .time: "datetime-local"
        case .secret: "password"
        case .number: "number"
        default: "text"
        }
    }
  }
  private(set) var isArea = false
  private(set) var isChoice = false
  private(set) var isGroup = false
  private(set) var type = "text"
}

/// One of several values.
struct OptionView {
  let text: String
  let label: String
  let isSelected: Bool
}
#endif
