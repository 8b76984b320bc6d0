import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage

/// A change of the way in which bulletins reach a device.
package struct DeliveryChange: Sendable, Equatable {
  /// The groups of the device, at most 8 names of 1 to 32 bytes; nil to leave them as they are.
  package var groups: [BoundedText<32>]?
  /// The number of revoked tokens that the device can keep; nil to leave it as it is.
  package var capacity: UInt64?

  /// The capacities that a device can have. The largest one is that of a host, and of a device without another one.
  package static let capacities: ClosedRange<UInt64> = 1...100_000

  /// Creates a change of nothing.
  package init() {}
}

extension Fleet {
  /// Changes the way in which bulletins reach a device. A device of other groups gets its revocations again, in their bulletins.
  ///
  /// - Throws: `notFound` if the device is not registered.
  package func set(_ change: DeliveryChange, of device: DeviceID, by actor: Actor) throws(AdministrationFault) {
    try changing { (session) throws(AdministrationFault) in
      let isFound = try session.running { (session) throws(FleetFault) in
        try session.set(change, of: device, by: actor)
      }
      guard isFound else { throw .notFound }
    }
  }
}

extension FleetSession {
  /// Changes the way in which bulletins reach a device, and returns whether the device is registered.
  func set(_ change: DeliveryChange, of device: DeviceID, by actor: Actor) throws(FleetFault) -> Bool {
    let id = Value.copying(device.bytes)
    guard try row("SELECT id FROM devices WHERE id = $1 FOR UPDATE", id) != nil else { return false }
    let before = try delivery(to: id)
    let names = change.groups.flatMap { CommandList.encode($0.map { $0.description }) } ?? before.names
    let capacity = change.capacity ?? before.capacity
    try run(
      """
      INSERT INTO device_groups (device, names, capacity) VALUES ($1, $2, $3)
      ON CONFLICT (device) DO UPDATE SET names = excluded.names, capacity = excluded.capacity
      """,
      id, .text(names), .unsigned(capacity))
    if let groups = change.groups {
      try run("DELETE FROM group_devices WHERE device = $1", id)
      for position in groups.indices { try insert(groups[position], position, of: id) }
    }
    try log("device.groups", hexadecimal(device), by: actor, "\(names), capacity \(capacity)")
    return true
  }

  /// Returns the names of a device's groups, as a column has them, and its capacity.
  private func delivery(to device: Value) throws(FleetFault) -> (names: String, capacity: UInt64) {
    guard let row = try row("SELECT names, capacity FROM device_groups WHERE device = $1", device) else {
      return ("[]", DeliveryChange.capacities.upperBound)
    }
    return try decoding { () throws(SQLFault) in (try row.text(0), try row.unsigned(1)) }
  }

  private func insert(_ group: BoundedText<32>, _ position: Int, of device: Value) throws(FleetFault) {
    var cryptography = OpenSSLCryptography()
    let id: AudienceID
    do throws(CryptographyFailure) { id = try audience(ofGroup: group, using: &cryptography) } catch {
      throw .cryptography
    }
    try run(
      "INSERT INTO group_devices (device, position, audience) VALUES ($1, $2, $3)", device, .unsigned(UInt64(position)),
      .copying(id.bytes))
  }
}
