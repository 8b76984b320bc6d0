import HoldfastCore
import HoldfastFormats

extension Schema {
  /// The form as JSON Schema. Forms with a name are references to the components of `openapi.yaml`.
  var json: JSONValue {
    switch self {
    case .text(let counts):
      return .object([
        ("type", .string("string")), ("minLength", .integer(UInt64(counts.lowerBound))),
        ("maxLength", .integer(UInt64(counts.upperBound))),
        ("pattern", .string(#"^[^\u0000-\u001f\u007f-\u009f]*$"#)),
      ])
    case .hexadecimal(let count): return Self.text(matching: "^[0-9a-f]{\(count)}$")
    case .bytes(let counts): return Self.text(matching: "^(?:[0-9a-f]{2}){\(counts.lowerBound),\(counts.upperBound)}$")
    case .base64(32...32): return Self.text(matching: "^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$")
    case .base64(let counts):
      let pattern =
        "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
      let limits: [(String, JSONValue)] = [("maxLength", .integer(UInt64((counts.upperBound + 2) / 3 * 4)))]
      let least: [(String, JSONValue)] = [("minLength", .integer(UInt64((counts.lowerBound + 2) / 3 * 4)))]
      return .object(
        [("type", .string("string")), ("contentEncoding", .string("base64")), ("pattern", .string(pattern))]
          + (counts.lowerBound > 0 ? least : []) + limits)
    case .anyText(let counts):
      return .object([
        ("type", .string("string")), ("minLength", .integer(UInt64(counts.lowerBound))),
        ("maxLength", .integer(UInt64(counts.upperBound))),
      ])
    case .openObject(let names):
      let reserved = JSONValue.object([("enum", .array(names.map { .string($0) }))])
      return .object([
        ("type", .string("object")), ("propertyNames", .object([("not", reserved)])),
        ("additionalProperties", Schema.anyMember.json),
      ])
    case .anyValue:
      let forms: [JSONValue] = [
        .object([("type", .string("string"))]), Schema.anyInteger.json, Schema.flag.json,
        .object([("type", .string("null"))]), .object([("type", .string("array")), ("items", Schema.anyMember.json)]),
        Schema.map(.anyMember).json,
      ]
      return .object([("anyOf", .array(forms))])
    case .coordinate: return Self.text(matching: "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$")
    case .invitationCode: return Self.text(matching: "^(?:[A-Za-z2-7]{5}-?){3}[A-Za-z2-7]{5}$")
    case .choice(let texts):
      return .object([("type", .string("string")), ("enum", .array(texts.map { .string($0) }))])
    case .integer(let range): return Self.integer(range)
    case .time:
      return Self.integer(0...maximumInteger).described("A time in Unix seconds.")
    case .flag: return .object([("type", .string("boolean"))])
    case .array(let schema, let counts):
      return .object([
        ("type", .string("array")), ("items", schema.json), ("minItems", .integer(UInt64(counts.lowerBound))),
        ("maxItems", .integer(UInt64(counts.upperBound))),
      ])
    case .object(let properties): return Self.object(properties)
    case .map(let schema): return .object([("type", .string("object")), ("additionalProperties", schema.json)])
    case .nullable(let schema):
      return .object([("oneOf", .array([schema.json, .object([("type", .string("null"))])]))])
    case .named(let name, _): return .object([("$ref", .string("#/components/schemas/\(name)"))])
    }
  }

  /// The names inside this form, with the forms that they stand for.
  var components: [(name: String, schema: Schema)] {
    switch self {
    case .named(let name, let schema): [(name, schema)] + schema.components
    case .openObject: Schema.anyMember.components
    case .array(let schema, _), .map(let schema), .nullable(let schema): schema.components
    case .object(let properties): properties.flatMap(\.schema.components)
    default: []
    }
  }

  /// Any value, with a name, because it may contain such values.
  private static let anyMember = Schema.named("AnyValue", .anyValue)

  private static func object(_ properties: [Property]) -> JSONValue {
    let members = properties.map { property in
      (property.name, property.schema.json.described(property.summary))
    }
    let required = properties.filter(\.isRequired).map { JSONValue.string($0.name) }
    return .object(
      [("type", .string("object")), ("properties", .object(members))]
        + (required.isEmpty ? [] : [("required", .array(required))]) + [("additionalProperties", .bool(false))])
  }

  private static func integer(_ range: ClosedRange<UInt64>) -> JSONValue {
    .object([
      ("type", .string("integer")), ("minimum", .integer(range.lowerBound)), ("maximum", .integer(range.upperBound)),
    ])
  }

  private static func text(matching pattern: String) -> JSONValue {
    .object([("type", .string("string")), ("pattern", .string(pattern))])
  }
}

extension JSONValue {
  /// The object with a description before the one that it has; as it is if the text is empty.
  fileprivate func described(_ text: String) -> JSONValue {
    guard !text.isEmpty else { return self }
    let others = (members ?? []).filter { $0.0 != "description" }
    return .object(others + [("description", .string(text + (self["description"]?.text.map { " \($0)" } ?? "")))])
  }
}
