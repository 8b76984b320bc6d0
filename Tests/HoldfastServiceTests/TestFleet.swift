import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastService
import TestPostgreSQL
import TestSupport
import Testing

/// The databases on which every test of the service runs.
enum TestedDatabase: String, CaseIterable, CustomTestStringConvertible {
  case sqlite, postgreSQL

  /// Those that this machine has.
  static var installed: [TestedDatabase] { PostgreSQLServer.isInstalled ? allCases : [.sqlite] }

  var testDescription: String { self == .sqlite ? "SQLite" : "PostgreSQL" }

  /// An empty database.
  func newLocation(in folder: borrowing TemporaryFolder) throws -> DatabaseLocation {
    if self == .sqlite { return .sqlite(path: "\(folder.path)/service.sqlite") }
    let server = try sharedServer.get()
    return .postgreSQL(url: server.url(try server.makeDatabase()))
  }
}

/// A service with a policy, a registered device and an approved app, in a new database.
final class TestFleet {
  let location: DatabaseLocation
  let clock: TestClock
  let fleet: Fleet
  let device: DeviceDescriptor
  private let folder: TemporaryFolder?
  let owner = Actor("owner")
  /// The tokens that `issuedToken` returned the ids of.
  var issuedTokens: [TokenID: [UInt8]] = [:]

  static let serviceKey = [UInt8](repeating: 0x21, count: 32)
  /// Limits that no test reaches by accident.
  static let limits: SQLLimits = {
    var limits = SQLLimits()
    limits.connectionMilliseconds = 60_000
    limits.commitMilliseconds = 60_000
    limits.answerMilliseconds = 60_000
    return limits
  }()
  static let now: UInt64 = 1_790_000_000

  convenience init(_ database: TestedDatabase, policy: ServicePolicy = ServicePolicy()) throws {
    let folder = try TemporaryFolder()
    try self.init(at: database.newLocation(in: folder), policy: policy, folder: folder)
  }

  init(at location: DatabaseLocation, policy: ServicePolicy = ServicePolicy(), folder: consuming TemporaryFolder? = nil)
    throws
  {
    self.folder = folder
    self.location = location
    clock = TestClock(seconds: Self.now)
    try Fleet.create(
      in: location, serviceKey: ServiceKey(secret(Self.serviceKey)), policy: policy, by: owner, clock: clock)
    fleet = try Fleet(
      location, serviceKey: ServiceKey(secret(Self.serviceKey)), limits: Self.limits, clock: clock)
    device = try Self.device(1)
    try fleet.register(device, label: "front door", by: owner)
    try approve(TestApp.image)
  }

  /// Another process over the same database.
  func instance(key: [UInt8] = serviceKey) throws -> Fleet {
    try Fleet(location, serviceKey: ServiceKey(secret(key)), limits: Self.limits, clock: clock)
  }

  func approve(_ image: [UInt8], version: AppVersion = AppVersion(major: 1, minor: 2, patch: 3)) throws {
    try fleet.approve(fixed(image), subject: "app", version: version, keys: try TestApp.keys(), by: owner)
  }

  func wait(seconds: UInt64) { clock.seconds = clock.seconds.map { $0 + seconds } }

  static func device(_ number: UInt8, key: UInt8? = nil) throws -> DeviceDescriptor {
    let scalar: Secret<32> = secret([UInt8](repeating: key ?? number, count: 32))
    return try DeviceDescriptor(
      deviceID: fixed([UInt8](repeating: number, count: 16)), publicPoint: P256PrivateKey(scalar: scalar).publicPoint)
  }

  /// Attests an app, and returns its attestation token.
  func attest(_ app: TestApp, for device: DeviceDescriptor? = nil, at fleet: Fleet? = nil) throws -> [UInt8] {
    let answer = try (fleet ?? self.fleet).attest(try app.evidence(), for: device ?? self.device)
    guard case .attested(let attestation) = answer else { throw TestRefusal(answer: "\(answer)") }
    return attestation.token
  }

  /// Attests an app, and asks for a token.
  func enrol(
    _ app: TestApp, for device: DeviceDescriptor? = nil, invitation: InvitationCode? = nil,
    wishes: TokenWishes = TokenWishes(), at fleet: Fleet? = nil
  ) throws -> TokenAnswer {
    let device = device ?? self.device
    return try (fleet ?? self.fleet).issue(
      attestation: try attest(app, for: device, at: fleet), for: device, invitation: invitation, wishes: wishes)
  }

  func invite(
    to device: DeviceDescriptor? = nil, _ permission: TokenPermission = TokenPermission(), for seconds: UInt64 = 3600
  ) throws -> InvitationCode {
    try fleet.invite(to: (device ?? self.device).deviceID, permission, for: seconds, by: owner).code
  }

  /// The result of an operation of the administration interface, for an operator with all scopes.
  func perform(
    _ name: String, key: String? = nil, query: [(String, String)] = [], body: JSONValue? = nil, at fleet: Fleet? = nil
  ) throws -> JSONValue {
    let operation = try #require(AdministrationOperation.all.first { $0.name == name })
    return try operation.perform(fleet ?? self.fleet, by: .local("owner"), key: key, query: query, body: body)
  }

  /// The records of a listing.
  func list(_ name: String, query: [(String, String)] = [], at fleet: Fleet? = nil) throws -> [JSONValue] {
    try #require(try perform(name, query: query, at: fleet)["items"]?.elements)
  }
}

/// An answer that a test did not expect.
struct TestRefusal: Error { let answer: String }

/// An app on a host, with a baseline of its own.
struct TestApp {
  /// The salt of the baseline, which makes it different from others.
  var salt: UInt8
  /// The host on which the app runs.
  var host: UInt8 = 1
  var image = Self.image
  /// The ways of measuring that the baseline permits or demands.
  var policy: MeasurementPolicy = []
  var properties: [BoundedText<32>] = []
  var created = TestFleet.now
  var evidenceKey: [UInt8]?
  var statements: EvidenceStatements?

  static let image = [UInt8](repeating: 0x77, count: 32)
  static let root = [UInt8](0..<16)

  static func keys() throws -> ReleaseKeys { try ReleaseKeys(of: secret(root)) }

  /// Evidence as an app makes it, with all components that the service requires.
  func evidence() throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    let keys = try Self.keys()
    let app = try ["app.debug", "app.image", "app.injected", "app.text", "os.release"].map { name in
      Component(
        id: try #require(BoundedText(name)), digest: fixed(name == "app.image" ? image : Self.digest(name)))
    }
    let device = try ["device.cpu", "device.machine", "device.secret"].map { name in
      Component(id: try #require(BoundedText(name)), digest: fixed(Self.digest(name + "\(host)")))
    }
    let configuration = try MeasurementConfiguration(
      salt: fixed([UInt8](repeating: salt, count: 32)), mpkID: keys.id, appIDs: app.map { $0.id },
      deviceIDs: device.map { $0.id }, created: created, policy: policy)
    let evidence = try Evidence(
      configuration: configuration, app: app, device: device, subject: nil, version: nil, properties: properties,
      statements: statements)
    guard let evidenceKey else { return try evidence.encoded(authenticatedWith: keys.evidence, using: &cryptography) }
    return try evidence.encoded(authenticatedWith: secret(evidenceKey), using: &cryptography)
  }

  /// Any 32 bytes that belong to a name.
  private static func digest(_ name: String) -> [UInt8] {
    let bytes = Array(name.utf8)
    return (0..<32).map { bytes[$0 % bytes.count] &+ UInt8($0) }
  }
}

extension TokenAnswer {
  /// The identifiers of the reasons of a refusal; empty for any other answer.
  var reasons: [String] {
    if case .refused(let refusal) = self { refusal.reasons.map { $0.identifier } } else { [] }
  }

  /// The reasons for people.
  var sentences: [String] { if case .refused(let refusal) = self { refusal.reasons.map { $0.text } } else { [] } }

  var token: StoredToken? { if case .issued(let token) = self { token } else { nil } }

  var request: RequestID? { if case .waiting(let id) = self { id } else { nil } }
}

extension AttestationAnswer {
  /// The identifiers of the reasons of a refusal; empty for any other answer.
  var reasons: [String] {
    if case .refused(let refusal) = self { refusal.reasons.map { $0.identifier } } else { [] }
  }
}
