#if Service
import HoldfastCore
import HoldfastFormats
import HoldfastService

/// A verb that carries out one operation of the administration interface on the database.
protocol AdministrationVerb: ServiceVerb {
  var instance: InstanceOptions { get }
  var json: Bool { get }
  /// The operation and its arguments.
  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall
  /// Prints what people see in addition to the result.
  func illustrate(_ result: JSONValue, _ configuration: ServiceConfiguration) throws(ServiceFailure)
}

/// An operation of the administration interface with its arguments.
struct OperationCall {
  let name: String
  var key: String?
  var query: [(String, String)] = []
  var body: [(String, JSONValue)] = []
}

extension AdministrationVerb {
  func illustrate(_ result: JSONValue, _ configuration: ServiceConfiguration) throws(ServiceFailure) {}

  mutating func perform() async throws(ServiceFailure) {
    let configuration = try instance.configuration()
    let fleet = try instance.fleet(configuration)
    let result = try performed(try operation(fleet), fleet)
    guard !json else { return Output.result(result) }
    Table(result).print()
    try illustrate(result, configuration)
  }

  /// Carries out an operation.
  func performed(_ call: OperationCall, _ fleet: Fleet) throws(ServiceFailure) -> JSONValue {
    guard let operation = AdministrationOperation.all.first(where: { $0.name == call.name }) else {
      throw ServiceFailure(.fault, "there is no operation \(call.name)")
    }
    do throws(AdministrationFault) {
      return try operation.perform(
        fleet, by: instance.caller, key: call.key, query: call.query,
        body: operation.body == nil ? nil : .object(call.body))
    } catch { throw ServiceFailure(error) }
  }
}

extension Fleet {
  /// Returns the id of the device that a person names by its id or its label, as 32 hexadecimal digits.
  func device(named name: String) throws(ServiceFailure) -> String {
    do throws(AdministrationFault) { return try deviceID(named: name) } catch {
      throw error == .notFound
        ? ServiceFailure(.malformed, "no device, or more than one, has the id or label \(name)", hint: "list devices")
        : ServiceFailure(error)
    }
  }
}

/// Reads a version, three numbers with points between them.
func versionNumbers(_ text: String, of option: String) throws(ServiceFailure) -> JSONValue {
  guard let version = AppVersion(parsing: text) else {
    throw ServiceFailure(.usage, "\(option) must be three numbers, such as 1.4.2")
  }
  return .array([version.major, version.minor, version.patch].map { .integer($0) })
}

/// Reads a time; nil if there is none.
func unixSeconds(_ text: String?, of option: String) throws(ServiceFailure) -> UInt64? {
  guard let text else { return nil }
  if let time = Timestamp(parsing: text) { return time.unixSeconds }
  guard let seconds = UInt64(text), seconds <= maximumInteger else {
    throw ServiceFailure(.usage, "\(option) must be a time such as 2026-11-22T18:00:00Z, or Unix seconds")
  }
  return seconds
}

/// A result for people: a table of records, or the members of one record.
struct Table {
  private let value: JSONValue

  init(_ value: JSONValue) { self.value = value }

  func print() {
    guard let items = value["items"]?.elements else {
      let members = value.members ?? []
      let width = members.map { $0.0.count }.max() ?? 0
      for (name, member) in members { Output.result(name.padded(to: width) + "  " + Self.text(member, name: name)) }
      return
    }
    guard let names = items.first?.members?.map(\.0) else { return Output.result("nothing") }
    let rows = [names] + items.map { item in (item.members ?? []).map { Self.text($0.1, name: $0.0) } }
    let widths = names.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    for row in rows {
      let cells = zip(row, widths).map { $0.padded(to: $1) }.joined(separator: "  ")
      Output.result(String(cells.reversed().drop { $0 == " " }.reversed()))
    }
    if let next = value["next"]?.text { Output.note("there are more: --after \(next)") }
  }

  /// The members that are times, in Unix seconds.
  private static let times: Set<String> = [
    "added", "blocked", "withdrawn", "first_seen", "last_seen", "revoked", "issued", "expires", "created", "used",
    "decided", "time", "active", "retired", "day", "changed", "stated", "raised", "ordered", "from",
    "until", "introduced", "ended",
  ]

  private static func text(_ value: JSONValue, name: String) -> String {
    switch value {
    case .null: "-"
    case .string(let text): text
    case .integer(let number) where times.contains(name) && number < 1 << 40: Timestamp(unixSeconds: number).description
    case .array(let numbers) where name == "version": numbers.map { text($0, name: "") }.joined(separator: ".")
    case .array(let elements): elements.map { text($0, name: "") }.joined(separator: ",")
    default: String(decoding: value.compact(), as: UTF8.self)
    }
  }
}

extension String {
  fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
#endif
