#if Service
import HTTPTypes
import HoldfastFormats
import HoldfastOnline
import HoldfastService
import Hummingbird

/// The pages that change records: a form that says what will happen, and its result.
extension ConsoleRoutes {
  func form(_ visit: Visit, for operation: AdministrationOperation) async throws -> Response {
    try operation.permit(visit.caller)
    return try await page(visit, for: operation, nil)
  }

  func perform(_ operation: AdministrationOperation, _ visit: Visit) async throws -> Response {
    try operation.permit(visit.caller)
    let form = try await postedForm(visit)
    let fields = (operation.body ?? []).map(FormField.init)
    let result: JSONValue
    do {
      let body = try await service.run { fleet in
        try fields.compactMap { field throws(AdministrationFault) in
          let value = try field.value(form.values(field.name), in: fleet)
          if value == nil, field.isRequired {
            throw .mistake(JSONMistake(at: [.member(field.name)], expected: .presence))
          }
          return value.map { (field.name, $0) }
        }
      }
      result = try await run(operation, visit, key: visit.context.key, body: .object(body))
    } catch var error as AdministrationFault {
      if case .mistake(let mistake) = error {
        error = .mistake(fields.lazy.compactMap { $0.words(for: mistake) }.first ?? mistake)
      }
      guard let text = error.sentence, error != .notFound else { throw error }
      let status: HTTPResponse.Status = if case .conflict = error { .conflict } else { .badRequest }
      return try await page(visit, for: operation, (form, text, status))
    }
    return try await answer(result, of: operation, visit)
  }

  /// The form of an operation: empty or with the record's values at first, and with what was entered after a mistake.
  private func page(
    _ visit: Visit, for operation: AdministrationOperation,
    _ mistake: (form: FormData, text: String, status: HTTPResponse.Status)?
  ) async throws -> Response {
    guard let kind = ConsoleKind(of: operation) else { throw Problem.notFound }
    let key = visit.context.key
    let record = try await current(operation, visit, key)
    var frame = FrameView(operation.title, visit.session, kind: kind.path)
    frame.fault = mistake?.text
    let fields = (operation.body ?? []).map { property in
      let field = FormField(property)
      if let mistake { return field.view(mistake.form.values(property.name)) }
      if property.name == "reason" { return field.view() }
      if let preset = visit.query?[property.name] { return field.view([preset]) }
      return field.view(FormField.texts(of: operation.method == .put ? record?.json : record?.json[property.name]))
    }
    return render(
      FormPage(
        frame: frame, summary: operation.summary, members: operation.method == .put ? nil : record?.members,
        fields: fields, address: key.map { operation.address($0) } ?? operation.consolePath,
        submit: operation.title, isDestructive: operation.isDestructive, cancel: home(operation, key)),
      "form", status: mistake?.status ?? .ok)
  }

  /// The record that an operation would change, where the operator may see it.
  private func current(
    _ operation: AdministrationOperation, _ visit: Visit, _ key: String?
  ) async throws -> (json: JSONValue, members: MembersView)? {
    let show =
      operation.hasKey
      ? AdministrationOperation.show(operation.kind)
      : operation.method == .put ? AdministrationOperation.list(operation.kind) : nil
    guard let show, visit.caller.scopes.contains(show.scope) else { return nil }
    let record = try await run(show, visit, key: key)
    return (record, try await members(record, visit, show))
  }

  /// The page to which an operation leads back.
  private func home(_ operation: AdministrationOperation, _ key: String?) -> String {
    if let key, let show = AdministrationOperation.show(operation.kind) { return show.address(key) }
    return AdministrationOperation.list(operation.kind)?.consolePath ?? Self.root
  }

  private func answer(
    _ result: JSONValue, of operation: AdministrationOperation, _ visit: Visit
  ) async throws -> Response {
    switch operation.name {
    case "invite": return try await invitation(result, operation, visit)
    case "addOperator":
      let name = result["name"]?.text ?? ""
      return try await secret(
        result, "token", label: "Token",
        "This token is shown only now. Give it to \(name) over a confidential channel.",
        nil, operation, visit)
    case "newDevelopmentKey":
      return try await secret(
        result, "development_key", label: "Key",
        "This key is shown only now. Any program that has it, and the keys of a registered release, is approved.",
        nil, operation, visit)
    case "showDomainSecret", "showMessageSecret":
      return try await secret(
        result, "secret", label: "Key", "The 32 bytes of the key in base64. Give them only to the backend.", nil,
        operation, visit)
    case "removeDomain", "removePin", "removeString", "forcePins":
      return redirect(home(operation, nil) + "?done=\(operation.name)")
    default:
      // The first member of a record is its key; that of the policy is none.
      let key = operation.method == .put ? nil : visit.context.key ?? result.members?.first?.1.text
      return redirect(home(operation, key) + "?done=\(operation.name)")
    }
  }

  private func invitation(
    _ result: JSONValue, _ operation: AdministrationOperation, _ visit: Visit
  ) async throws -> Response {
    let code = result["code"]?.text ?? ""
    let invitation = try? Invitation(code: code, services: service.configuration.publicAddresses)
    let names =
      service.configuration.publicAddresses.isEmpty
      ? "The QR code has the code only, because public_url is not configured."
      : "The QR code also names this service."
    return try await secret(
      result, "code", label: "Code",
      "This code is shown only now, and good for one token. Give it to the prover's user over a confidential channel. \(names)",
      invitation.flatMap { PictureView($0.text) }, operation, visit)
  }

  /// Shows a secret, and the record without it.
  private func secret(
    _ result: JSONValue, _ member: String, label: String, _ summary: String, _ picture: PictureView?,
    _ operation: AdministrationOperation, _ visit: Visit
  ) async throws -> Response {
    let record = JSONValue.object((result.members ?? []).filter { $0.0 != member })
    let key = record.members?.first?.1.text
    let page = SecretPage(
      frame: FrameView("\(ConsoleKind(of: operation)?.singular ?? "") made", visit.session, kind: operation.kind),
      summary: summary, secret: result[member]?.text ?? "", label: label, picture: picture,
      members: try await members(record, visit, operation), record: LinkView("Continue", home(operation, key)))
    return render(page, "secret")
  }
}
#endif
