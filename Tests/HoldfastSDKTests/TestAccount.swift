import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOnline
import HoldfastOpenSSL
import HoldfastProver
import Synchronization
import TestSupport

import HoldfastSDK

/// A service with one account, and an app on a host, without a network, a disk for them, or real measurements.
final class TestAccount: ServiceCaller, AppMeasurer {
  /// What the service answers, and what the host is like.
  struct World {
    var unixSeconds: UInt64? = 1_800_000_000
    var bootSeconds: Int64 = 1000
    var bootID = "boot-1"
    var hasNetwork = true
    /// The reason why each call fails; nil if they succeed.
    var failure: CallFailure?
    /// Replaces an answer.
    var answer: ((ServiceOperation, JSONValue) -> JSONValue)?
    var revision: UInt64 = 1
    var services: [String] = []
    var pins: [(String, [String])] = []
    var forcedPins: UInt64 = 0
    var features = (strings: true, custom: true, messages: true)
    var strings: [(String, String)] = []
    var lifetime: UInt64 = 300
    var isJWE = false
    var configurationText: String?
    /// The reason why each request for the configuration fails; nil if they succeed.
    var configurationFailure: CarrierFailure.Kind?
    var checks: UInt8 = 1
    var measurement: UInt8 = 1
    var cannotMeasure = false
    var secret: UInt8 = 7
    var changes: [String] = []
    var calls: [(operation: ServiceOperation, body: JSONValue?, services: [PinnedService], seconds: UInt64)] = []
    var claims: [AppClaims] = []
    var removed = 0
    /// Called in the middle of each call.
    var during: (@Sendable (ServiceOperation) -> Void)?
  }

  let world = Mutex(World())
  private let key: Mutex<P256PrivateKey>
  let point: P256Point

  init() throws {
    let key = try P256PrivateKey()
    point = key.publicPoint
    self.key = Mutex(key)
  }

  /// The initial configuration of the account.
  var text: String { "holdfast-configuration:1?key=\(base64URL(point.bytes))&service=https%3A%2F%2Fa.example" }

  static let messageKey = [UInt8](repeating: 9, count: 32)
  static let deviceID = [UInt8](repeating: 5, count: 16)

  func client(_ place: TemporaryFolder, options: ClientOptions = ClientOptions()) throws -> HoldfastClient {
    try client(at: place.file("app"), options: options)
  }

  func client(at path: String, options: ClientOptions = ClientOptions()) throws -> HoldfastClient {
    let environment = ClientEnvironment(
      caller: self, measurer: self,
      now: { self.world.withLock { Moment(unixSeconds: $0.unixSeconds, bootSeconds: $0.bootSeconds) } },
      bootID: world.withLock { $0.bootID }, hasNetwork: { self.world.withLock { $0.hasNetwork } })
    return try HoldfastClient(
      configuration: text, state: path, keys: .default, options: options, environment: environment)
  }

  subscript<Value: Sendable>(member: WritableKeyPath<World, Value> & Sendable) -> Value {
    get { world.withLock { $0[keyPath: member] } }
    set { world.withLock { $0[keyPath: member] = newValue } }
  }

  /// The bodies of the calls of one operation.
  func bodies(_ operation: ServiceOperation) -> [JSONValue] {
    world.withLock { $0.calls.filter { $0.operation == operation }.map { $0.body ?? .null } }
  }

  /// Moves both clocks.
  func pass(seconds: UInt64) {
    world.withLock {
      $0.unixSeconds = $0.unixSeconds.map { $0 + seconds }
      $0.bootSeconds += Int64(seconds)
    }
  }

  /// Makes each call fail in this way.
  func fail(
    _ kind: CarrierFailure.Kind, status: UInt64? = nil, reasons: [String] = [], code: String? = nil, help: String? = nil
  ) {
    let failure = CallFailure.service(
      CarrierFailure(kind, status: status, reasons: reasons, responseCode: code, help: help))
    world.withLock { $0.failure = failure }
  }

  func make(
    _ call: ServiceCall, at services: [PinnedService], timeoutSeconds: UInt64
  ) throws(CallFailure) -> ServiceAnswer {
    let (failure, during) = world.withLock { world in
      world.calls.append((call.operation, call.body, services, timeoutSeconds))
      let own = call.operation == .configuration ? world.configurationFailure : nil
      return (own.map { CallFailure.service(CarrierFailure($0)) } ?? world.failure, world.during)
    }
    during?(call.operation)
    if let failure { throw failure }
    let value = answer(call)
    let changed = world.withLock { $0.answer?(call.operation, value) } ?? value
    return ServiceAnswer(from: services[0].address, changed)
  }

  private func answer(_ call: ServiceCall) -> JSONValue {
    let world = world.withLock {
      ($0.unixSeconds ?? 0, $0.lifetime, $0.revision, $0.forcedPins, $0.features, $0.strings)
    }
    let (now, lifetime, revision, forced, features, strings) = world
    switch call.operation {
    case .configuration: return .string(self[\.configurationText] ?? configuration())
    case .attest:
      return .object([
        ("attestation", .string("a.b.c.d.e")), ("arc", .string("ABCDEFGHIJ")), ("expires", .integer(now + 300)),
      ])
    case .fetch:
      var claims: [(String, JSONValue)] = [("iss", .string("service")), ("iat", .integer(now))]
      claims.append(("exp", .integer(now + lifetime)))
      if let hash = call.body?["hash"] { claims.append(("pay", hash)) }
      let number = JSONValue.integer(UInt64(bodies(.fetch).count))
      let token = signed(.object(claims + [("number", number)]), type: "holdfast-app+jwt")
      let custom = call.body?["payload"].map { payload in
        JSONValue.string(signed(.object((payload.members ?? []) + claims), type: "holdfast-custom+jwt"))
      }
      let hasDomain = call.body?["domain"] != nil
      return .object([
        ("token", hasDomain ? .string(token) : .null), ("expires", hasDomain ? .integer(now + lifetime) : .null),
        ("custom", custom ?? .null),
        ("strings", call.body?["strings"] == nil ? .null : .object(strings.map { ($0.0, .string($0.1)) })),
        ("message_key", features.messages ? .string(base64(Self.messageKey)) : .null), ("arc", .string("ABCDEFGHIJ")),
        ("did", .string(base64(Self.deviceID))), ("configuration", .integer(revision)),
        ("force_pins", .integer(forced)),
      ])
    // Only the command line calls them.
    case .enrolment, .leave, .postureRules, .bulletins, .audit: return .null
    }
  }

  /// The configuration of this revision, signed by the account's key.
  func configuration(type: String = "holdfast-configuration+jwt") -> String {
    let (revision, services, pins, forced, features, now) = world.withLock {
      ($0.revision, $0.services, $0.pins, $0.forcedPins, $0.features, $0.unixSeconds ?? 0)
    }
    let domain = JSONValue.object([("protected", .bool(true)), ("measurement", .bool(false))])
    return signed(
      .object([
        ("iss", .string("service")), ("iat", .integer(now)), ("revision", .integer(revision)),
        ("services", .array(services.map { .string($0) })), ("domains", .object([("api.example.com", domain)])),
        ("pins", .object(pins.map { ($0.0, .array($0.1.map { .string($0) })) })), ("force_pins", .integer(forced)),
        (
          "features",
          .object([
            ("secure_strings", .bool(features.strings)), ("custom_tokens", .bool(features.custom)),
            ("message_signing", .bool(features.messages)),
          ])
        ),
      ]), type: type)
  }

  /// A compact JWS of these claims.
  func signed(_ claims: JSONValue, type: String) -> String {
    var cryptography = OpenSSLCryptography()
    do {
      let id = base64URL(try keyID(of: point, using: &cryptography).bytes)
      let header = JSONValue.object([("alg", .string("ES256")), ("kid", .string(id)), ("typ", .string(type))])
      let (first, second) = (header.compact(), claims.compact())
      let input = Array("\(base64URL(first.span)).\(base64URL(second.span))".utf8)
      var hash = cryptography.sha256()
      hash.append(input.span)
      let digest: Digest = try hash.finish()
      let signature: FixedBytes<64> = try key.withLock { try $0.sign(digest) }
      return String(decoding: input, as: UTF8.self) + "." + base64URL(signature.bytes)
    } catch { return "\(error)" }
  }
}

extension TestAccount {
  private func evidence(_ claims: AppClaims) throws -> TakenEvidence {
    let (number, fails) = world.withLock { world in
      world.claims.append(claims)
      return (UInt8(world.claims.count), world.cannotMeasure)
    }
    if fails { throw MeasurementError.unknownKey }
    return TakenEvidence(
      bytes: [1, 2, number], configuration: [3, number], checks: try integrityChecks(), measurement: try measurement())
  }

  func takeEvidence(_ claims: AppClaims) throws -> TakenEvidence { try evidence(claims) }
  func beginBaseline(for device: DeviceDescriptor, _ claims: AppClaims) throws -> TakenEvidence { try evidence(claims) }
  func removeBaseline(of evidence: TakenEvidence, for device: DeviceDescriptor) { world.withLock { $0.removed += 1 } }
  func integrityChecks() throws -> Digest { digest(self[\.checks]) }
  func measurement() throws -> Digest {
    if self[\.cannotMeasure] { throw MeasurementError.unknownKey }
    return digest(self[\.measurement])
  }
  func changedComponents() -> [String] { self[\.changes] }
  func hostSecret() throws -> Secret<32> {
    Secret<32>(copying: [UInt8](repeating: self[\.secret], count: 32).span) ?? Secret<32>()
  }

  private func digest(_ byte: UInt8) -> Digest {
    var digest = Digest()
    digest[0] = byte
    return digest
  }
}

func base64(_ bytes: [UInt8]) -> String {
  var text: [UInt8] = []
  text.append(asPaddedBase64: bytes.span)
  return String(decoding: text, as: UTF8.self)
}

/// A pin of a key with this number.
func pin(_ number: UInt8) -> String { base64([UInt8](repeating: number, count: 32)) }
