import HoldfastFormats

/// The online services that a prover knows, as the file `services.json` of its state folder has them: the pins that each must show,
/// and the services of a command that names none.
///
/// A person may write the file too, so a mistake in it has a place. Nothing of a file with a mistake is used.
package struct KnownServices: Sendable {
  /// The services that have pins.
  package private(set) var pinned: [PinnedService] = []
  /// The services of a command that names none, and how they are reached; nil until an enrolment succeeded at a service.
  package var usual: ServiceAccess?

  /// The maximum byte count of the file.
  package static let maximumByteCount = 65_536
  /// The version that is written. Version 1, which has only pins, is read too.
  private static let version: UInt64 = 2

  /// Creates the value for a folder without the file.
  package init() {}

  /// Reads the file.
  ///
  /// - Throws: The first mistake.
  package init(_ bytes: [UInt8]) throws(JSONMistake) {
    guard let value = try? JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount) else {
      throw JSONMistake(in: bytes, byteLimit: Self.maximumByteCount) ?? JSONMistake(at: [], expected: .syntax)
    }
    do throws(JSONMistake) { try self.init(JSONMember(value)) } catch { throw error.located(in: bytes) }
  }

  private init(_ file: JSONMember) throws(JSONMistake) {
    let version = try file.required("version").integer(1...Self.version)
    try file.checkMembers(version == 1 ? ["version", "pins"] : ["version", "pins", "default"])
    for (name, member) in try (version == 1 ? file.required("pins") : file.member("pins"))?.members() ?? [] {
      guard let address = try? ServiceAddress(name), pins(of: address).isEmpty else {
        throw member.mistake(.form("below the URL of a service, each once"))
      }
      pinned.append(PinnedService(address, pins: try Self.pins(member)))
    }
    usual = try file.member("default").map { (member) throws(JSONMistake) in try ServiceAccess(member) }
  }

  private static func pins(_ list: JSONMember) throws(JSONMistake) -> [ServicePin] {
    let elements = try list.elements()
    // A service with an empty list would need no pin, although somebody once gave one.
    guard (1...ServicePin.countLimit).contains(elements.count) else {
      throw list.mistake(.form("1 to \(ServicePin.countLimit) pins"))
    }
    var pins: [ServicePin] = []
    for element in elements {
      guard let pin = element.value.text.flatMap({ ServicePin($0) }) else {
        throw element.mistake(.form("sha256// and the base64 of 32 bytes"))
      }
      pins.append(pin)
    }
    return pins
  }

  /// The contents of the file.
  package var encoded: [UInt8] {
    let pins = pinned.map { service in
      (service.address.description, JSONValue.array(service.pins.map { .string($0.description) }))
    }
    return JSONValue.object(
      [("version", .integer(Self.version)), ("pins", .object(pins))] + (usual.map { [("default", $0.json)] } ?? [])
    ).pretty()
  }

  /// Returns the pins of a service; none if its certificate suffices.
  package func pins(of address: ServiceAddress) -> [ServicePin] { pinned.first { $0.address == address }?.pins ?? [] }

  /// Sets the pins of services, in place of those that they had.
  package mutating func setPins(_ pins: [ServicePin], of addresses: [ServiceAddress]) {
    pinned.removeAll { addresses.contains($0.address) }
    pinned += addresses.map { PinnedService($0, pins: pins) }
  }

  /// Returns the usual way to reach services; nil if one of them is none of the usual services.
  package func access(to addresses: [ServiceAddress]) -> ServiceAccess? {
    guard let usual, addresses.allSatisfy(usual.addresses.contains) else { return nil }
    return usual
  }
}

/// Services, and how they are reached: what the options of `holdfast enroll` say.
package struct ServiceAccess: Sendable, Equatable {
  /// The services in the order in which they are tried, 1 to ``ServiceAddress/countLimit``.
  package var addresses: [ServiceAddress]
  /// The absolute path of the file with certificate authorities; nil for those of the host.
  package var authorities: String?
  /// Whether the authorities of the host count too, if there is a file.
  package var isTrustingSystem: Bool
  /// The seconds for an enrolment, with the time in which an operator decides; nil for the usual ones.
  package var timeoutSeconds: UInt64?
  /// The attempts of an enrolment.
  package var attempts: AttemptRule

  /// Creates the value.
  package init(
    _ addresses: [ServiceAddress], authorities: String? = nil, isTrustingSystem: Bool = false,
    timeoutSeconds: UInt64? = nil, attempts: AttemptRule = .usual
  ) {
    (self.addresses, self.authorities, self.isTrustingSystem) = (addresses, authorities, isTrustingSystem)
    (self.timeoutSeconds, self.attempts) = (timeoutSeconds, attempts)
  }

  fileprivate init(_ member: JSONMember) throws(JSONMistake) {
    try member.checkMembers(["services", "ca", "system_ca", "timeout", "retries", "pause"])
    addresses = []
    let services = try member.required("services")
    for element in try services.elements() {
      guard let address = element.value.text.flatMap({ try? ServiceAddress($0) }), !addresses.contains(address) else {
        throw element.mistake(.form("the URL of a service, each once"))
      }
      addresses.append(address)
    }
    guard (1...ServiceAddress.countLimit).contains(addresses.count) else {
      throw services.mistake(.form("1 to \(ServiceAddress.countLimit) services"))
    }
    authorities = try member.member("ca").map { (path) throws(JSONMistake) in
      let text = try path.text(byteCounts: 1...4095)
      guard text.hasPrefix("/"), !text.utf8.contains(0) else { throw path.mistake(.form("an absolute path")) }
      return text
    }
    isTrustingSystem = try member.member("system_ca")?.flag() ?? false
    guard !isTrustingSystem || authorities != nil else { throw member.mistake(.form("without system_ca, or with ca")) }
    timeoutSeconds = try member.member("timeout")?.integer(CarrierTaskLine.timeoutRange)
    let retryCount = try member.member("retries")?.integer(AttemptRule.retryRange)
    let pauseSeconds = try member.member("pause")?.integer(AttemptRule.pauseRange)
    attempts = AttemptRule(retryCount: retryCount, pauseSeconds: pauseSeconds) ?? .usual
  }

  fileprivate var json: JSONValue {
    var members: [(String, JSONValue)] = [("services", .array(addresses.map { .string($0.description) }))]
    if let authorities { members.append(("ca", .string(authorities))) }
    if isTrustingSystem { members.append(("system_ca", .bool(true))) }
    if let timeoutSeconds { members.append(("timeout", .integer(timeoutSeconds))) }
    if let count = attempts.retryCount { members.append(("retries", .integer(count))) }
    if let seconds = attempts.pauseSeconds { members.append(("pause", .integer(seconds))) }
    return .object(members)
  }
}
