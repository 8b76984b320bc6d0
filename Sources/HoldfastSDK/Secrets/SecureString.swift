import HoldfastFormats
import HoldfastLinux

/// The rules for names and values of secure strings.
enum SecureString {
  /// The largest number of definitions of this host.
  static let definitionLimit = 256
  /// The time for which texts that were fetched are given without asking the service again, in seconds.
  static let freshSeconds: UInt64 = 3600
  /// The time for which they are given if the service cannot be asked, in seconds.
  static let offlineSeconds: UInt64 = 86_400

  /// Returns whether a text may be a name: 1 to 64 bytes of UTF-8 without control characters.
  static func isName(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) }
  }

  /// Returns whether a text may be a value: 1 to 4096 bytes of UTF-8.
  static func isDefinition(_ text: String) -> Bool { (1...4096).contains(text.utf8.count) }

  /// Texts by the UTF-8 bytes of their names. A `String` would be the same key as another one that only looks the same.
  typealias Values = [[UInt8]: String]

  /// Reads an object whose members are names with their values; nil for anything else.
  static func values(_ value: JSONValue?) -> Values? {
    guard let members = value?.members, members.count <= definitionLimit else { return nil }
    var values: Values = [:]
    for (name, value) in members {
      guard let text = value.text, isName(name), isDefinition(text) else { return nil }
      values[Array(name.utf8)] = text
    }
    return values
  }

  /// Returns values as an object, sorted by their names.
  static func json(_ values: Values) -> JSONValue {
    .object(
      values.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map {
        (String(decoding: $0.key, as: UTF8.self), .string($0.value))
      })
  }
}

/// The account's texts as a fetch brought them, with the moment and the measurement at which they were fetched.
struct FetchedStrings: Sendable {
  /// The texts by their names.
  let values: SecureString.Values
  /// The attestation response code of the fetch.
  let responseCode: String
  /// The moment before the texts were asked for.
  let fetched: Moment
  /// The id of the start of the machine in which ``fetched`` counts seconds.
  let bootID: String

  /// Returns the age in seconds; nil if it cannot be told, because the date is missing or before that of the fetch.
  ///
  /// Within one start of the machine, the time that has really passed counts too: a clock that is put back makes nothing younger.
  func age(at now: Moment, bootID: String) -> UInt64? {
    guard let then = fetched.unixSeconds, let unixSeconds = now.unixSeconds, unixSeconds >= then else { return nil }
    let byDate = unixSeconds - then
    guard bootID == self.bootID else { return byDate }
    guard let passed = UInt64(exactly: now.bootSeconds - fetched.bootSeconds) else { return nil }
    return max(byDate, passed)
  }
}

extension FetchedStrings {
  private static let byteLimit = 16 << 20

  /// The content of the sealed file.
  var encoded: [UInt8] {
    JSONValue.object([
      ("version", .integer(1)), ("fetched", .integer(fetched.unixSeconds ?? 0)),
      ("boot", .string(bootID)), ("boot_seconds", .integer(UInt64(max(fetched.bootSeconds, 0)))),
      ("arc", .string(responseCode)), ("strings", SecureString.json(values)),
    ]).compact()
  }

  /// Parses the content of the sealed file; nil for anything else.
  init?(_ bytes: [UInt8]) {
    guard let value = try? JSONValue(parsing: bytes, byteLimit: Self.byteLimit),
      value.hasOnly(["version", "fetched", "boot", "boot_seconds", "arc", "strings"]), value["version"]?.number == 1,
      let fetched = value["fetched"]?.number, let bootID = value["boot"]?.text,
      let seconds = value["boot_seconds"]?.number, let code = value["arc"]?.text,
      let values = SecureString.values(value["strings"])
    else { return nil }
    (self.values, responseCode, self.bootID) = (values, code, bootID)
    self.fetched = Moment(unixSeconds: fetched, bootSeconds: Int64(seconds))
  }
}
