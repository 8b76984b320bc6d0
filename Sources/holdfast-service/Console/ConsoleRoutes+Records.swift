#if Service
import HoldfastFormats
import HoldfastLinux
import HoldfastService
import Hummingbird

/// The pages that show records.
extension ConsoleRoutes {
  private static let pageLimit = "50"

  func overview(_ visit: Visit) async throws -> Response {
    var page = OverviewPage(frame: frame("Overview", visit, kind: ""))
    guard visit.caller.scopes.contains(.read) else { return render(page, "overview") }
    page.isReadable = true
    let requests = try await items("requests", visit, [("status", "waiting"), ("limit", "10")])
    let changes = try await items("changes", visit, [("limit", "10")])
    page.waiting = try await table("requests", requests, visit)
    page.changes = try await table("changes", changes, visit)
    if let statistics = AdministrationOperation.list("statistics") {
      page.plots = PlotView.plots(of: try await run(statistics, visit))
    }
    return render(page, "overview")
  }

  func statistics(_ visit: Visit, _ operation: AdministrationOperation) async throws -> Response {
    let days = visit.query?["days"] ?? "30"
    let field = operation.query.first { $0.name == "days" }.map(FormField.init)
    let spans = ["7", "30", "90", "366"].map {
      MenuView(title: "\($0) days", address: "\(operation.consolePath)?days=\($0)", isCurrent: $0 == days)
    }
    let query = field == nil ? [] : [("days", days)]
    let plots = PlotView.plots(of: try await run(operation, visit, query: query))
    return render(
      StatisticsPage(frame: frame("Statistics", visit, kind: operation.kind), spans: spans, plots: plots), "statistics")
  }

  func list(_ visit: Visit, _ operation: AdministrationOperation) async throws -> Response {
    guard let kind = ConsoleKind(of: operation), let query = visit.query else { throw Problem.notFound }
    let fields = operation.query.filter { !["after", "limit"].contains($0.name) }.map(FormField.init)
    let filters = fields.map { ($0.name, query[$0.name] ?? "") }.filter { !$0.1.isEmpty }
    let after = query["after"]
    var page = ListPage(
      frame: frame(kind.title, visit, kind: kind.path), address: operation.consolePath, links: createLinks(kind, visit))
    page.fields = fields.map { $0.view(query.values($0.name)) }
    page.isTimeline = ["audits", "timeline"].contains(kind.path)
    page.first = after == nil ? nil : address(operation, filters)
    let result: JSONValue
    do {
      let converted = try await service.run { fleet in
        try fields.compactMap { field throws(AdministrationFault) in
          try field.value(query.values(field.name), in: fleet).map {
            (field.name, $0.text ?? $0.number.map { String($0) } ?? "")
          }
        }
      }
      let paging = [("limit", Self.pageLimit)] + (after.map { [("after", $0)] } ?? [])
      result = try await run(operation, visit, query: converted + paging)
    } catch let error as AdministrationFault {
      guard let text = error.sentence else { throw error }
      page.frame.fault = text
      return render(page, "list", status: .badRequest)
    }
    let items = result["items"]?.elements ?? []
    if page.isTimeline {
      page.days = days(items, try await maker(items, visit, isShort: true), kind, operation)
    } else {
      page.table = try await table(kind.path, items, visit)
    }
    page.next = (result["next"]?.text).map { address(operation, filters + [("after", $0)]) }
    return render(page, "list")
  }

  func record(_ visit: Visit, _ operation: AdministrationOperation) async throws -> Response {
    guard let kind = ConsoleKind(of: operation) else { throw Problem.notFound }
    let key = visit.context.key ?? ""
    let record = try await run(operation, visit, key: key)
    let state = RecordState(record, at: try now())
    let actions = AdministrationOperation.all.filter { action in
      action.kind == kind.path && action.hasKey && action.method != .get && visit.caller.scopes.contains(action.scope)
        && (RecordState.states(of: action)?.contains(state?.word ?? "") ?? true)
    }
    let related = kind.related.filter { target in
      let form = AdministrationOperation.all.first { $0.consolePath == "\(Self.root)/\(target.path)" }
      return form.map { visit.caller.scopes.contains($0.scope) } ?? true
    }
    return render(
      RecordPage(
        frame: frame(kind.singular, visit, kind: kind.path),
        members: try await members(record, visit, operation),
        related: related.map {
          LinkView($0.title, "\(Self.root)/\($0.path)?\($0.filter)=\(FormData.encoded(key))")
        },
        actions: actions.map { LinkView($0.title, $0.address(key), isDestructive: $0.isDestructive) },
        hasActions: !actions.isEmpty), "record")
  }

  /// Shows what there is once: the policy, or a key.
  func single(_ visit: Visit, _ operation: AdministrationOperation) async throws -> Response {
    guard let kind = ConsoleKind(of: operation) else { throw Problem.notFound }
    let record = try await run(operation, visit)
    let actions = AdministrationOperation.all.filter {
      $0.kind == kind.path && $0.method != .get && visit.caller.scopes.contains($0.scope)
    }
    return render(
      RecordPage(
        frame: frame(kind.title, visit, kind: kind.path), members: try await members(record, visit, operation),
        related: [], actions: actions.map { LinkView($0.title, $0.consolePath, isDestructive: $0.isDestructive) },
        hasActions: !actions.isEmpty), "record")
  }

  // MARK: Parts

  /// The frame, with the notice about the operation that led here.
  func frame(_ title: String, _ visit: Visit, kind: String) -> FrameView {
    var frame = FrameView(title, visit.session, kind: kind)
    let done = visit.query?["done"]
    if let operation = AdministrationOperation.all.first(where: { $0.name == done }) {
      frame.notice = "Done: \(operation.title.prefix(1).lowercased())\(operation.title.dropFirst())."
    }
    return frame
  }

  /// Carries out an operation that the operator's token permits.
  func run(
    _ operation: AdministrationOperation, _ visit: Visit, key: String? = nil, query: [(String, String)] = [],
    body: JSONValue? = nil
  ) async throws -> JSONValue {
    let caller = visit.caller
    try operation.permit(caller)
    return try await service.run { fleet in
      try operation.perform(fleet, by: caller, key: key, query: query, body: body)
    }
  }

  private func items(_ kind: String, _ visit: Visit, _ query: [(String, String)]) async throws -> [JSONValue] {
    guard let operation = AdministrationOperation.list(kind) else { return [] }
    return try await run(operation, visit, query: query)["items"]?.elements ?? []
  }

  private func table(_ path: String, _ items: [JSONValue], _ visit: Visit) async throws -> TableView {
    guard let kind = ConsoleKind.all.first(where: { $0.path == path }), let list = AdministrationOperation.list(path)
    else { throw Problem.notFound }
    let maker = try await maker(items, visit, isShort: true)
    return TableView(
      kind.title, kind.columns, items.map { maker.cells($0, kind.columns, kind, list.answer.recordProperties) })
  }

  func members(
    _ record: JSONValue, _ visit: Visit, _ operation: AdministrationOperation
  ) async throws -> MembersView {
    guard let kind = ConsoleKind(of: operation) else { throw Problem.notFound }
    let names = (record.members ?? []).map(\.0)
    let maker = try await maker([record], visit, isShort: false)
    let hasState = RecordState(record, at: maker.now) != nil && record["status"] == nil
    return MembersView(
      cells: maker.cells(
        record, (hasState ? ["state"] : []) + names, kind, operation.answer.recordProperties))
  }

  /// Returns a maker that knows the labels of the devices that records name.
  private func maker(_ records: [JSONValue], _ visit: Visit, isShort: Bool) async throws -> CellMaker {
    let devices = Set(records.compactMap { $0["device"]?.text })
    var known: [String: String] = [:]
    if let show = AdministrationOperation.show("devices"), visit.caller.scopes.contains(show.scope) {
      let caller = visit.caller
      known = try await service.run { fleet in
        var known: [String: String] = [:]
        for device in devices {
          // A refusal may name a device that is not registered.
          guard let record = try? show.perform(fleet, by: caller, key: device) else { continue }
          known[device] = record["label"]?.text ?? ""
        }
        return known
      }
    }
    return CellMaker(now: try now(), caller: visit.caller, devices: known, isShort: isShort)
  }

  private func days(
    _ items: [JSONValue], _ maker: CellMaker, _ kind: ConsoleKind, _ operation: AdministrationOperation
  ) -> [DayView] {
    var days: [DayView] = []
    for item in items {
      let (text, machine) = CellMaker.date(item["time"]?.number ?? 0)
      let names = ["device", "user", "sequence"].filter { item[$0] != nil && item[$0]?.text != "" }
      var cells = maker.cells(item, ["event"] + names, kind, operation.answer.recordProperties).dropFirst().map { $0 }
      for (name, value) in item["details"]?.members ?? [] where name != "user" {
        cells.append(CellView(label: name.words, text: value.text ?? ""))
      }
      let entry = EntryView(
        clock: String(text.dropFirst(11)), machineTime: machine, event: item["event"]?.text ?? "", cells: cells)
      let day = String(text.prefix(10))
      if days.last?.day == day {
        days[days.count - 1].entries.append(entry)
      } else {
        days.append(DayView(day: day, entries: [entry]))
      }
    }
    return days
  }

  private func createLinks(_ kind: ConsoleKind, _ visit: Visit) -> [LinkView] {
    AdministrationOperation.all
      .filter {
        $0.kind == kind.path && !$0.hasKey && $0.method == .post && $0.name != "receiveAudits"
          && visit.caller.scopes.contains($0.scope)
      }
      .map { LinkView($0.title, $0.consolePath) }
  }

  private func address(_ operation: AdministrationOperation, _ query: [(String, String)]) -> String {
    let pairs = query.map { "\($0)=\(FormData.encoded($1))" }
    return operation.consolePath + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&"))
  }

  func now() throws -> UInt64 {
    guard let now = SystemClock().unixSeconds() else { throw FleetFault.noClock }
    return now
  }
}

extension Schema {
  /// The members of a record in this form, or in this page of records.
  var recordProperties: [Schema.Property] {
    guard case .object(let properties) = inner else { return [] }
    if let items = properties.first(where: { $0.name == "items" }), case .array(let record, _) = items.schema {
      return record.recordProperties
    }
    return properties
  }
}

extension AdministrationFault {
  /// The operator's mistake, as a sentence; nil for a fault of the service.
  var sentence: String? {
    if case .fleet = self { return nil }
    let message = ServiceFailure(self).message
    return message.prefix(1).uppercased() + message.dropFirst() + "."
  }
}
#endif
