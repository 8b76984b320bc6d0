import HoldfastCore
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL

/// The deliveries of malicious couriers, which are accepted provers nevertheless.
final class HostileCouriers {
  private let service: SimulatedService
  private let writer: BulletinWriter
  private var key: P256PrivateKey
  private var random: SeededRandom

  init(_ settings: SimulationSettings, service: SimulatedService) throws {
    self.service = service
    // It names the issuer's key, and signs with another one.
    writer = try BulletinWriter(of: service.issuer)
    key = try P256PrivateKey()
    random = SeededRandom(seed: settings.seed, stream: 4)
  }

  /// Does what the role does at a visit.
  ///
  /// - Parameters:
  ///   - role: one of the malicious ones.
  ///   - connection: the connection with the device.
  ///   - synchronised: the time at which the courier fetched bulletins last; nil if it has not yet.
  ///   - second: the time, in seconds from the beginning.
  func visit(
    as role: CourierRole, over connection: inout SimulatedConnection, synchronised: UInt64?, at second: UInt64
  ) throws {
    let newest = synchronised.flatMap { service.edition(at: $0) }?.bulletins ?? []
    switch role {
    case .forger: _ = try connection.exchange(try forged(newest.last, at: second))
    case .replayer:
      // The first edition has the oldest bulletins that there ever were.
      let oldest = newest.isEmpty ? [] : service.editions[0].bulletins
      for index in 0..<MailAllowance.messageLimit where !oldest.isEmpty {
        _ = try connection.exchange(oldest[index % oldest.count].bytes)
      }
    case .cutter:
      guard let last = newest.last else { return }
      for _ in 0..<MailAllowance.messageLimit {
        _ = try connection.exchange(Array(last.bytes.prefix(random.index(below: last.bytes.count))))
      }
    case .flooder:
      while connection.isOpen { _ = try connection.exchange(newest.last?.bytes) }
    case .honest, .lost, .silent: return
    }
  }

  /// Returns a bulletin that the issuer did not sign: a genuine one of which a bit of the signature is changed, or a new one.
  private func forged(_ genuine: IssuedBulletin?, at second: UInt64) throws -> [UInt8] {
    if var bytes = genuine?.bytes, Bool.random(using: &random) {
      let bit = random.index(below: 512)
      bytes[bytes.count - 1 - bit / 8] ^= 1 << (bit % 8)
      return bytes
    }
    var contents = BulletinContents()
    contents.revoked = [TokenID(number: Int(truncatingIfNeeded: random.next())): 1 << 40]
    let stamp = BulletinStamp(
      after: genuine?.stamp.number ?? 0, isComplete: true,
      milliseconds: (SimulatedService.beginning + second) * 1000, audience: service.group)
    var system = SystemRandom()
    return try writer.write(contents, stamp, key: &key, random: &system)
  }
}
