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
  package let query: [Parameter]
  /// The members of the request's body; nil if it has none.
  package let body: [Parameter]?
  private let perform: @Sendable (Fleet, AdministrationRequest) throws(AdministrationFault) -> JSONValue

  init(
    _ name: String, _ method: Method, _ path: String, _ scope: OperatorScope, _ summary: String,
    query: [Parameter] = [], body: [Parameter]? = nil,
    perform: @escaping @Sendable (Fleet, AdministrationRequest) throws(AdministrationFault) -> JSONValue
  ) {
    (self.name, self.method, self.path, self.scope, self.summary) = (name, method, "/v1/admin" + path, scope, summary)
    (self.query, self.body, self.perform) = (query, body, perform)
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
    var members: [(String, JSONValue)] = []
    for (name, text) in query {
      guard let parameter = self.query.first(where: { $0.name == name }), !members.contains(where: { $0.0 == name })
      else { throw .mistake(JSONMistake(at: [.member(name)], expected: .knownMember(self.query.map(\.name)))) }
      members.append((name, parameter.value(ofQuery: text)))
    }
    let request: AdministrationRequest
    do throws(JSONMistake) {
      let parameters = JSONMember(.object(members))
      for parameter in self.query { try parameter.check(parameters) }
      let content = JSONMember(body ?? .object([]))
      try content.checkMembers(self.body?.map(\.name) ?? [])
      for parameter in self.body ?? [] { try parameter.check(content) }
      request = AdministrationRequest(caller: caller, key: key ?? "", query: parameters, body: content)
    } catch { throw .mistake(error) }
    return try perform(fleet, request)
  }
}

extension AdministrationOperation {
  /// A parameter of the query, or a member of the body.
  package struct Parameter: Sendable {
    /// The form of the value.
    package enum Form: Sendable {
      /// Text of some numbers of UTF-8 bytes.
      case text(ClosedRange<Int>)
      /// Hexadecimal digits.
      case hexadecimal(digitCount: Int)
      /// One of these texts.
      case choice([String])
      case integer(ClosedRange<UInt64>)
      /// An array of at most 16 texts of 1 to 32 bytes.
      case commands
      /// An array of texts, each one of these.
      case choices([String])
      /// An object with other rules: a device's descriptor, a version, or a policy.
      case object
      /// An array of three integers.
      case version
    }

    package let name: String
    package let form: Form
    package let isRequired: Bool
    /// A sentence for people.
    package let summary: String

    init(_ name: String, _ form: Form, required: Bool = false, _ summary: String) {
      (self.name, self.form, isRequired, self.summary) = (name, form, required, summary)
    }

    /// Converts a parameter of a query. A value of another form fails the check.
    fileprivate func value(ofQuery text: String) -> JSONValue {
      if case .integer = form, text.utf8.count < 17, let number = UInt64(text) { return .integer(number) }
      return .string(text)
    }

    /// Checks presence and form of this member.
    fileprivate func check(_ object: JSONMember) throws(JSONMistake) {
      guard let member = isRequired ? try object.required(name) : object.member(name) else { return }
      switch form {
      case .text(let byteCounts): _ = try member.text(byteCounts: byteCounts)
      case .hexadecimal(let count):
        guard let bytes = bytes(hexadecimal: try member.text(byteCounts: count...count)), bytes.count * 2 == count
        else {
          throw member.mistake(.hexadecimal(digitCount: count))
        }
      case .choice(let texts):
        guard let text = member.value.text, texts.contains(text) else { throw member.mistake(.text(of: texts)) }
      case .integer(let range): _ = try member.integer(range)
      case .commands:
        let elements = try member.elements()
        guard elements.count <= 16 else { throw member.mistake(.atMost(16)) }
        for element in elements { _ = try element.text(byteCounts: 1...32) }
      case .choices(let texts):
        for element in try member.elements() {
          guard let text = element.value.text, texts.contains(text) else { throw element.mistake(.text(of: texts)) }
        }
      case .object: guard member.value.members != nil else { throw member.mistake(.object) }
      case .version: for element in try member.elements(count: 3) { _ = try element.integer() }
      }
    }
  }
}

/// A request to the administration interface whose parameters have the right form.
package struct AdministrationRequest: Sendable {
  /// The operator.
  let caller: Operator
  /// The key in the path; empty if there is none.
  let key: String
  let query: JSONMember
  let body: JSONMember
}
