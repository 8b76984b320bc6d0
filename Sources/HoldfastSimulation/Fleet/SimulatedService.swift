import Glibc
import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastProver
import HoldfastService
import Synchronization

/// The online service of the simulated fleet: the real one, with a virtual clock, and a database in a temporary folder.
///
/// One device stands for the group, because all devices of a group get the same bulletins. For each revocation, a prover enrols for that
/// device, and its token is revoked.
struct SimulatedService {
  /// The Unix time at which every simulation begins, in seconds.
  static let beginning: UInt64 = 1_790_000_000

  /// The least seconds between two bulletins.
  static let signingPause = Fleet.bulletinSeconds

  /// The chain of bulletins as it is from a time on, until the next edition.
  struct Edition {
    /// The time, in seconds from the beginning.
    let second: UInt64
    /// The bulletins, the oldest first.
    let bulletins: [IssuedBulletin]
  }

  /// The key that signs the bulletins.
  let issuer: P256Point
  /// The group of all devices.
  let group: AudienceID
  /// The editions, in the order of their times.
  let editions: [Edition]
  /// The index of the revocation of each token that a bulletin revokes.
  let revocations: [TokenID: Int]

  /// Runs the service through the whole time.
  ///
  /// - Parameters:
  ///   - settings: the settings, of which the revocations are in the order of their times.
  ///   - signings: the times at which it signs, and the number of revocations that were made until then.
  init(_ settings: SimulationSettings, signings: [(second: UInt64, count: Int)]) throws {
    let folder = try ScratchFolder()
    let fleet = try RunningFleet(in: folder.path, validityDays: settings.validityDays)
    var editions: [Edition] = []
    var revocations: [TokenID: Int] = [:]
    for (second, count) in signings {
      for index in revocations.count..<count {
        let token = try fleet.revokeToken(number: index, at: settings.revocations[index])
        revocations[token] = index
      }
      editions.append(Edition(second: second, bulletins: try fleet.bulletins(at: second)))
    }
    (issuer, group) = (fleet.issuer, fleet.group)
    (self.editions, self.revocations) = (editions, revocations)
  }

  /// Returns the edition that couriers get at a time; nil before the first one.
  func edition(at second: UInt64) -> Edition? { editionIndex(at: second).map { editions[$0] } }

  /// Returns the index of the edition that couriers get at a time; nil before the first one.
  fileprivate func editionIndex(at second: UInt64) -> Int? {
    var (low, high) = (0, editions.count)
    while low < high {
      let middle = (low + high) / 2
      if editions[middle].second <= second { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? low - 1 : nil
  }
}

/// The answers of the service to couriers, of which each is made once.
final class ServiceAnswers {
  private let service: SimulatedService
  private var known: [Question: [CarriedBulletin]] = [:]

  private struct Question: Hashable {
    let edition: Int
    let have: UInt64
  }

  init(_ service: SimulatedService) { self.service = service }

  /// Returns the answer to a courier that asks for bulletins with numbers above `have`, within the limits of the service.
  func answer(at second: UInt64, above have: UInt64) -> [CarriedBulletin] {
    guard let edition = service.editionIndex(at: second) else { return [] }
    let question = Question(edition: edition, have: have)
    if let answer = known[question] { return answer }
    let bulletins = service.editions[edition].bulletins.filter { $0.stamp.number > have }
    let answer = Fleet.answer(bulletins).map(CarriedBulletin.init)
    known[question] = answer
    return answer
  }
}

extension CarriedBulletin {
  /// Creates the bulletin that a courier carries.
  init(_ bulletin: IssuedBulletin) {
    self.init(
      audience: bulletin.stamp.audience, number: bulletin.stamp.number, predecessor: bulletin.stamp.predecessor,
      bytes: bulletin.bytes)
  }
}

/// The clock of the service, which stands until it is set.
private final class VirtualClock: Clock, Sendable {
  private let now = Mutex(SimulatedService.beginning)

  /// Sets the clock to a time in seconds from the beginning.
  func set(_ second: UInt64) { now.withLock { $0 = SimulatedService.beginning + second } }

  func unixSeconds() -> UInt64? { now.withLock { $0 } }

  func monotonicMilliseconds() -> UInt64 { now.withLock { $0 * 1000 } }
}

/// The service with its only device.
private struct RunningFleet {
  private let fleet: Fleet
  private let clock: VirtualClock
  private let device: DeviceDescriptor
  let issuer: P256Point
  let group: AudienceID
  private static let actor = Actor("simulation")
  private static let image = Digest(repeating: 0x11)

  init(in folder: String, validityDays: UInt64) throws {
    clock = VirtualClock()
    let location = DatabaseLocation.sqlite(path: "\(folder)/service.sqlite")
    var policy = ServicePolicy()
    policy.tokenSeconds = validityDays * 86_400
    try Fleet.create(
      in: location, serviceKey: ServiceKey(Secret<32>()), policy: policy, by: Self.actor, clock: clock)
    fleet = try Fleet(location, serviceKey: ServiceKey(Secret<32>()), clock: clock)
    guard let key = try fleet.issuerKeys().first else { throw SimulationFault.service }
    issuer = key.point
    device = try DeviceDescriptor(deviceID: DeviceID(), publicPoint: P256PrivateKey().publicPoint)
    let text: StaticString = "fleet"
    let name = BoundedText<32>(text)
    var delivery = DeliveryChange()
    delivery.groups = [name]
    try fleet.register(device, label: nil, delivery, by: Self.actor)
    try fleet.approve(
      Self.image, subject: BoundedText("app"), version: AppVersion(major: 1, minor: 0, patch: 0),
      keys: ReleaseKeys(of: Secret<16>()),
      by: Self.actor)
    var cryptography = OpenSSLCryptography()
    group = try audience(ofGroup: name, using: &cryptography)
  }

  /// Enrols a prover and revokes its token at once, and returns the id of the token.
  func revokeToken(number: Int, at second: UInt64) throws -> TokenID {
    clock.set(second)
    let invitation = try fleet.invite(to: device.deviceID, TokenPermission(), for: 3600, by: Self.actor)
    guard case .attested(let attestation) = try fleet.attest(try evidence(number, second), for: device),
      case .issued(let token) = try fleet.issue(
        attestation: attestation.token, for: device, invitation: invitation.code, wishes: TokenWishes())
    else { throw SimulationFault.service }
    try fleet.revoke(token: token.id, reason: BoundedText("stolen"), by: Self.actor)
    return token.id
  }

  /// Returns the evidence of an app with a new baseline.
  private func evidence(_ number: Int, _ second: UInt64) throws -> [UInt8] {
    let keys = try ReleaseKeys(of: Secret<16>())
    let appIDs: [StaticString] = ["app.debug", "app.image", "app.injected", "app.text", "os.release"]
    let hostIDs: [StaticString] = ["device.cpu", "device.machine", "device.secret"]
    let app = appIDs.map { Component(id: ComponentID($0), digest: Self.image) }
    let host = hostIDs.map { Component(id: ComponentID($0), digest: Digest(number: number)) }
    let configuration = try MeasurementConfiguration(
      salt: ConfigurationSalt(number: number), mpkID: keys.id, appIDs: app.map(\.id), deviceIDs: host.map(\.id),
      created: SimulatedService.beginning + second)
    let evidence = try Evidence(
      configuration: configuration, app: app, device: host, subject: nil, version: nil, properties: [])
    var cryptography = OpenSSLCryptography()
    return try evidence.encoded(authenticatedWith: keys.evidence, using: &cryptography)
  }

  /// Returns all bulletins for the device, the oldest first. What is new is signed before.
  func bulletins(at second: UInt64) throws -> [IssuedBulletin] {
    clock.set(second)
    var all: [IssuedBulletin] = []
    while true {
      let answer = try fleet.bulletins(for: device.deviceID, above: all.last?.stamp.number ?? 0)
      guard !answer.isEmpty else { return all }
      all += answer
    }
  }
}

extension TypedBytes {
  /// Creates a value of equal bytes.
  fileprivate init(repeating byte: UInt8) {
    self.init()
    for index in 0..<count { self[index] = byte }
  }

  /// Creates a value that begins with a number, most significant byte first. It has at least 8 bytes.
  init(number: Int) {
    self.init()
    for index in 0..<8 { self[index] = UInt8(truncatingIfNeeded: number >> (56 - 8 * index)) }
  }
}

/// A fault of the simulation itself, and not of its input.
package enum SimulationFault: Error, Equatable {
  /// The simulated service did not do what it is for.
  case service
  /// There is no place for a temporary folder.
  case folder
}

/// A temporary folder, which is removed with this object, in `TMPDIR` or `/tmp`.
private final class ScratchFolder {
  let path: String

  init() throws(SimulationFault) {
    let place = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var template = Array("\(place)/holdfast-simulate-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw .folder }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    for name in ["service.sqlite", "service.sqlite-wal", "service.sqlite-shm"] { unsafe unlink("\(path)/\(name)") }
    unsafe rmdir(path)
  }
}
