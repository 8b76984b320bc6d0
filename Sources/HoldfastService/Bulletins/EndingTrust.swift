import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastStorage

/// The devices and groups that trust the key that signs now only for a short time, because it was introduced to them.
package struct EndingTrust: Sendable, Equatable {
  /// The key that signs now.
  package let key: KeyID
  /// The first time at which one of them no longer trusts it, in Unix seconds. It may be past.
  package let until: UInt64
  /// The label or the id of the device, or the name of the group, for which that is.
  package let first: String
  /// The number of devices and groups.
  package let count: UInt64
}

extension Fleet {
  /// The seconds before the end of a key's trust from which operators are told: 60 days, in which a new key can be introduced everywhere.
  package static let trustNoticeSeconds: UInt64 = 60 * 86_400

  /// Returns the devices and groups that soon trust the key that signs now no more, if operators have to be told: at the first call, after
  /// changes, at most once a minute, and once a day.
  package func endingTrust() throws(FleetFault) -> EndingTrust? {
    let (trust, time) = try read { (session) throws(FleetFault) in
      guard let issuer = try self.keys(in: session).issuer(at: session.now) else { throw .corrupt }
      return (try session.endingTrust(in: issuer.id), session.now)
    }
    return trustWatch.withLock { $0.reports(trust, at: time) } ? trust : nil
  }
}

extension FleetSession {
  fileprivate func endingTrust(in key: KeyID) throws(FleetFault) -> EndingTrust? {
    let found = try rows(
      """
      SELECT audience, until FROM key_orders WHERE kid = $1 AND introducer IS NOT NULL AND ended IS NULL AND until <= $2
      ORDER BY until, audience
      """, .copying(key.bytes), .unsigned(now + Fleet.trustNoticeSeconds))
    guard let first = found.first else { return nil }
    let until = try decoding { () throws(SQLFault) in try first.unsigned(1) }
    let name = try audienceName(try audienceID(first, 0))
    return EndingTrust(key: key, until: until, first: name, count: UInt64(found.count))
  }
}

/// A watch for keys whose trust ends, which operators are told at the first look, after changes, at most once a minute, and once a day.
struct TrustWatch {
  private static let reportSeconds: UInt64 = 60
  private static let repetitionSeconds: UInt64 = 86_400

  private var reported: EndingTrust?
  private var reportTime: UInt64 = 0

  /// Returns whether to report what ends.
  ///
  /// - Parameters:
  ///   - trust: The trust that ends soon; nil if there is none.
  ///   - time: The present time, in Unix seconds.
  mutating func reports(_ trust: EndingTrust?, at time: UInt64) -> Bool {
    guard let trust else {
      reported = nil
      return false
    }
    guard time >= reportTime + (trust == reported ? Self.repetitionSeconds : Self.reportSeconds) else { return false }
    (reported, reportTime) = (trust, time)
    return true
  }
}
