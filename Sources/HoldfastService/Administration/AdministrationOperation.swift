import HoldfastFormats

/// One operation of the administration interface: the row from which HTTP routes, `openapi.yaml` and the console are made.
package struct AdministrationOperation: Sendable {
  /// The methods of HTTP that operations use.
  package enum Method: String, Sendable {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
  }

  /// The identifier, such as `listDevices`.
  package let name: String
  package let method: Method
  /// The path, in which `{id}` stands for the key of a record.
  package let path: String
  package let scope: OperatorScope
  /// A sentence for people.
  package let summary: String
  /// The parameters of the query.
  package let query: [Schema.Property]
  /// The members of the request's body; nil if it has none.
  package let body: [Schema.Property]?
  /// The form of the answer.
  package let answer: Schema
  private let perform: @Sendable (Fleet, AdministrationRequest) throws(AdministrationFault) -> JSONValue

  init(
    _ name: String, _ method: Method, _ path: String, _ scope: OperatorScope, _ summary: String,
    query: [Schema.Property] = [], body: [Schema.Property]? = nil, answer: Schema,
    perform: @escaping @Sendable (Fleet, AdministrationRequest) throws(AdministrationFault) -> JSONValue
  ) {
    (self.name, self.method, self.path, self.scope, self.summary) = (name, method, "/v1/admin" + path, scope, summary)
    (self.query, self.body, self.answer, self.perform) = (query, body, answer, perform)
  }

  /// Carries out a request.
  ///
  /// - Parameters:
  ///   - fleet: The service.
  ///   - caller: The operator, whose scopes the caller of this function has checked.
  ///   - key: The key in the path; nil if the path has none.
  ///   - query: The parameters of the query. Unknown ones are refused.
  ///   - body: The body; nil if the operation has none. Unknown members are refused.
  /// - Returns: The answer.
  package func perform(
    _ fleet: Fleet, by caller: Operator, key: String?, query: [(String, String)] = [], body: JSONValue? = nil
  ) throws(AdministrationFault) -> JSONValue {
    let request: AdministrationRequest
    do throws(JSONMistake) {
      let parameters = try Schema.parameters(query, self.query)
      let content = JSONMember(body ?? .object([]))
      try Schema.check(content, self.body ?? [])
      request = AdministrationRequest(caller: caller, key: key ?? "", query: parameters, body: content)
    } catch { throw .mistake(error) }
    return try perform(fleet, request)
  }
}

extension Schema {
  /// Reads the parameters of a query. Unknown and repeated ones are refused.
  static func parameters(_ query: [(String, String)], _ properties: [Property]) throws(JSONMistake) -> JSONMember {
    var members: [(String, JSONValue)] = []
    for (name, text) in query {
      guard let parameter = properties.first(where: { $0.name == name }), !members.contains(where: { $0.0 == name })
      else { throw JSONMistake(at: [.member(name)], expected: .knownMember(properties.map(\.name))) }
      members.append((name, parameter.schema.value(ofQuery: text)))
    }
    let parameters = JSONMember(.object(members))
    try check(parameters, properties)
    return parameters
  }

  /// Converts a parameter of a query. A value of another form fails the check.
  private func value(ofQuery text: String) -> JSONValue {
    switch self {
    case .integer, .time:
      guard let number = UInt64(text), String(number) == text else { return .string(text) }
      return .integer(number)
    default: return .string(text)
    }
  }
}
