import HoldfastFormats

/// The description of the service's interface, from which clients can be made: the file `openapi.yaml`.
///
/// Source: OpenAPI 3.1.
package enum OpenAPIDocument {
  /// The document as YAML.
  package static var yaml: String { json.yaml }

  private static var json: JSONValue {
    .object([
      ("openapi", .string("3.1.0")),
      (
        "info",
        .object([
          ("title", .string("Holdfast online service")), ("version", .string("1")),
          ("description", .string("It decides, for a fleet of devices, who may enrol for which device.")),
          ("license", .object([("name", .string("Apache-2.0")), ("identifier", .string("Apache-2.0"))])),
        ])
      ), ("paths", .object(paths)),
      (
        "components",
        .object([
          ("schemas", .object(components)),
          (
            "responses",
            .object(
              problemResponses.map { problem in
                (
                  problem.name,
                  response(problem.summary, type: "application/problem+json", schema: .problem, [])
                )
              })
          ),
          (
            "securitySchemes",
            .object([("operator", .object([("type", .string("http")), ("scheme", .string("bearer"))]))])
          ),
        ])
      ),
    ])
  }

  /// The operations by path.
  private static var paths: [(String, JSONValue)] {
    let operations =
      PublicOperation.all.map { ($0.path, $0.method, $0.json) }
      + AdministrationOperation.all.map { ($0.path, $0.method, $0.json) }
    var paths: [(String, [(String, JSONValue)])] = []
    for (path, method, json) in operations {
      let member = (method.rawValue.lowercased(), json)
      if let index = paths.firstIndex(where: { $0.0 == path }) {
        paths[index].1.append(member)
      } else {
        paths.append((path, [member]))
      }
    }
    return paths.map { ($0.0, .object($0.1)) }
  }

  private static var components: [(String, JSONValue)] {
    let used =
      Schema.problem.components + PublicOperation.all.flatMap(\.components)
      + AdministrationOperation.all.flatMap(\.components)
    var components: [(String, JSONValue)] = []
    for (name, schema) in used where !components.contains(where: { $0.0 == name }) {
      components.append((name, schema.json))
    }
    return components.sorted { $0.0 < $1.0 }
  }
}

extension PublicOperation {
  fileprivate var components: [(name: String, schema: Schema)] {
    Schema.object((body ?? []) + query).components + answers.compactMap(\.schema).flatMap(\.components)
  }

  fileprivate var json: JSONValue {
    let responses = answers.map { answer in
      let type = answer.schema == nil ? answer.type : "application/json"
      return (String(answer.status), response(answer.summary, type: type, schema: answer.schema, answer.headers))
    }
    let json = operation(
      name, scope.map { "\(summary) Scope: \($0.rawValue)." } ?? summary,
      tag: scope == nil ? "public" : "administration",
      parameters: (path.hasSuffix("{id}") ? [key] : []) + query.map { parameter($0, in: "query") }, body: body,
      responses: responses, problems: problems + (scope == nil ? [] : [401, 403]))
    return scope == nil ? json : .object((json.members ?? []) + [operatorSecurity])
  }
}

extension AdministrationOperation {
  fileprivate var components: [(name: String, schema: Schema)] {
    Schema.object((body ?? []) + query).components + answer.components
  }

  fileprivate var json: JSONValue {
    let parameters = query.map { parameter($0, in: "query") }
    let hasKey = path.contains("{id}")
    let json = operation(
      name, "\(summary) Scope: \(scope.rawValue).", tag: "administration",
      parameters: (hasKey ? [key] : []) + parameters, body: body,
      responses: [("200", response("The answer.", type: "application/json", schema: answer, []))],
      problems: [401, 403, 404] + (body == nil && query.isEmpty ? [] : [409]))
    return .object((json.members ?? []) + [operatorSecurity])
  }
}

/// The member that requires an operator's token.
private let operatorSecurity = ("security", JSONValue.array([.object([("operator", .array([]))])]))

/// The parameter for the key in a path.
private let key = parameter(
  Schema.Property("id", .text(1...128), required: true, "The key of the record."), in: "path")

private func parameter(_ property: Schema.Property, in place: String) -> JSONValue {
  .object([
    ("name", .string(property.name)), ("in", .string(place)), ("required", .bool(property.isRequired)),
    ("description", .string(property.summary)), ("schema", property.schema.json),
  ])
}

private func response(
  _ summary: String, type: String, schema: Schema?, _ headers: [Schema.Property]
) -> JSONValue {
  let fields = headers.map { header in
    (header.name, JSONValue.object([("description", .string(header.summary)), ("schema", header.schema.json)]))
  }
  return .object(
    [("description", .string(summary))] + (fields.isEmpty ? [] : [("headers", .object(fields))]) + [
      (
        "content",
        .object([
          (type, .object([("schema", schema?.json ?? .object([("type", .string("string"))]))]))
        ])
      )
    ])
}

private func operation(
  _ name: String, _ summary: String, tag: String, parameters: [JSONValue], body: [Schema.Property]?,
  responses: [(String, JSONValue)], problems: [UInt64]
) -> JSONValue {
  let statuses = [400, 429, 500, 503] + problems + (body == nil ? [] : [408, 413, 415])
  let failures = problemResponses.filter { statuses.contains($0.status) }.map { problem in
    (String(problem.status), JSONValue.object([("$ref", .string("#/components/responses/\(problem.name)"))]))
  }
  var members: [(String, JSONValue)] = [
    ("operationId", .string(name)), ("summary", .string(summary)), ("tags", .array([.string(tag)])),
  ]
  if !parameters.isEmpty { members.append(("parameters", .array(parameters))) }
  if let body {
    members.append(
      (
        "requestBody",
        .object([
          ("required", .bool(body.contains(where: \.isRequired))),
          (
            "content",
            .object([("application/json", .object([("schema", Schema.object(body).json)]))])
          ),
        ])
      ))
  }
  return .object(members + [("responses", .object(responses + failures))])
}

/// The answers to requests that fail, which all are problem documents.
private let problemResponses: [(status: UInt64, name: String, summary: String)] = [
  (400, "Malformed", "The request does not have the form that is described here."),
  (401, "Unauthorized", "An operator's token is required."),
  (403, "Refused", "The request is refused, with all reasons."),
  (404, "NotFound", "There is no such record."),
  (408, "TooSlow", "The request did not arrive in time."),
  (409, "Conflict", "The state of a record, or a value of the right form, does not permit this; nothing changed."),
  (413, "TooLarge", "The body is too large."),
  (415, "AnotherType", "The body is not application/json."),
  (429, "TooManyRequests", "There are too many requests from this address."),
  (500, "Failed", "The service failed."),
  (503, "Unavailable", "The service cannot answer at present."),
]
