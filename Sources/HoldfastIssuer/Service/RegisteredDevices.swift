import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage

/// The devices for which the backend issues tokens: the member `devices` of a service's policy.
package enum DeviceAdmission: String, Sendable, CaseIterable {
  /// Only devices that the owner registered.
  case listed
  /// Any device that the owner did not block. The first token for a device id determines the device's key.
  case firstCome = "first-come"
}

/// The owner's record of a device, which is registered, blocked, or both.
package struct RegisteredDevice: Sendable, Equatable {
  /// The device's id.
  package let deviceID: DeviceID
  /// The device's public key; nil for a device that is blocked but not registered.
  package let publicPoint: P256Point?
  /// The owner's description of the device, at most 64 bytes.
  package let label: BoundedText<64>?
  /// The time of the registration, in Unix seconds; nil if the device is not registered.
  package let added: UInt64?
  /// The time of the block, in Unix seconds; nil if the device is not blocked.
  package let blocked: UInt64?

  /// Creates a record from its fields.
  package init(
    deviceID: DeviceID, publicPoint: P256Point?, label: BoundedText<64>? = nil, added: UInt64? = nil,
    blocked: UInt64? = nil
  ) {
    (self.deviceID, self.publicPoint, self.label) = (deviceID, publicPoint, label)
    (self.added, self.blocked) = (added, blocked)
  }
}

/// The outcome of a registration.
package enum DeviceRegistration: Sendable, Equatable {
  /// The device was registered. If tokens had been issued for its id under another key, they are revoked, and the value
  /// is the new generation.
  case added(generation: UInt64?)
  /// The device was already registered, and its label was changed.
  case relabelled
  /// The device was already registered, and nothing changed.
  case unchanged
  /// The id is registered with another key, and nothing changed.
  case anotherKey
}

extension IssuedBaselinesDatabase {
  /// Durably registers a device. Registering it again changes only the label, if one is given.
  ///
  /// The owner's key replaces one that a first token recorded. Tokens issued for that key are revoked.
  ///
  /// - Parameters:
  ///   - device: The device's id and public key.
  ///   - label: The description, at most 64 bytes; nil keeps the present one.
  ///   - now: The current time, in Unix seconds.
  package mutating func register(
    _ device: DeviceDescriptor, label: BoundedText<64>?, now: UInt64
  ) throws(ServiceLedgerFault) -> DeviceRegistration {
    let id = Value.copying(device.deviceID.bytes)
    let binding: Digest
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { binding = try deviceBinding(device, using: &cryptography) } catch {
      throw ServiceLedgerFault(.issuerLedger)
    }
    do throws(DatabaseError) {
      return try database.transaction { () throws(DatabaseError) in
        if let point = try database.oneBytes("SELECT point FROM listed WHERE device = ?", id) {
          guard point == [UInt8](device.publicKey.point.bytes) else { return .anotherKey }
          guard let label else { return .unchanged }
          let changed = try database.run(
            "UPDATE listed SET label = ? WHERE device = ? AND label IS NOT ?", .text(label.description), id,
            .text(label.description))
          return changed == 1 ? .relabelled : .unchanged
        }
        try database.run(
          "INSERT INTO listed (device, point, label, added) VALUES (?, ?, ?, ?)", id,
          .copying(device.publicKey.point.bytes), .optional(label?.description), .unsigned(now))
        let bound = try database.oneBytes("SELECT binding FROM device WHERE device = ?", id)
        guard let bound, bound != [UInt8](binding.bytes) else { return .added(generation: nil) }
        try database.run("UPDATE device SET binding = ? WHERE device = ?", .copying(binding.bytes), id)
        return .added(generation: try raise(id))
      }
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }

  /// Durably removes the registration of a device but keeps its block. Returns false if it was not registered.
  package mutating func unregister(_ device: DeviceID) throws(ServiceLedgerFault) -> Bool {
    try change("DELETE FROM listed WHERE device = ?", .copying(device.bytes))
  }

  /// Durably blocks a device, registered or not. Returns false if it was already blocked.
  ///
  /// - Parameter now: The current time, in Unix seconds.
  package mutating func block(_ device: DeviceID, now: UInt64) throws(ServiceLedgerFault) -> Bool {
    try change(
      "INSERT OR IGNORE INTO blocked (device, since) VALUES (?, ?)", .copying(device.bytes), .unsigned(now))
  }

  /// Durably removes the block of a device. Returns false if there was none.
  package mutating func unblock(_ device: DeviceID) throws(ServiceLedgerFault) -> Bool {
    try change("DELETE FROM blocked WHERE device = ?", .copying(device.bytes))
  }

  /// Returns whether the backend has issued a token for the device or the owner has registered or blocked it.
  package func knows(_ device: DeviceID) throws(ServiceLedgerFault) -> Bool {
    do throws(DatabaseError) {
      return try database.oneUnsigned(
        """
        SELECT EXISTS (SELECT 1 FROM listed WHERE device = ?1) OR EXISTS (SELECT 1 FROM blocked WHERE device = ?1)
          OR EXISTS (SELECT 1 FROM device WHERE device = ?1)
        """, .copying(device.bytes)) == 1
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }

  /// Returns the owner's record of a device; nil if there is none.
  package func registration(of device: DeviceID) throws(ServiceLedgerFault) -> RegisteredDevice? {
    do throws(DatabaseError) {
      return try database.one(
        """
        SELECT id.device, point, label, added, since FROM (SELECT ? AS device) AS id
          LEFT JOIN listed USING (device) LEFT JOIN blocked USING (device) WHERE point NOT NULL OR since NOT NULL
        """, .copying(device.bytes)
      ) { (row) throws(DatabaseError) in try Self.registeredDevice(row) }
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }

  /// Returns the owner's records of all devices, sorted by id.
  package func registeredDevices() throws(ServiceLedgerFault) -> [RegisteredDevice] {
    do throws(DatabaseError) {
      return try database.all(
        """
        SELECT id.device, point, label, added, since
          FROM (SELECT device FROM listed UNION SELECT device FROM blocked) AS id
          LEFT JOIN listed USING (device) LEFT JOIN blocked USING (device) ORDER BY id.device
        """
      ) { (row) throws(DatabaseError) in try Self.registeredDevice(row) }
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }

  private static func registeredDevice(_ row: borrowing Row) throws(DatabaseError) -> RegisteredDevice {
    let id = try row.bytes(0)
    guard let deviceID = DeviceID(id.span) else { throw .corrupt }
    var point: P256Point?
    if try !row.isNull(1) {
      let bytes = try row.bytes(1)
      point = P256Point(bytes.span)
      guard point != nil else { throw .corrupt }
    }
    return RegisteredDevice(
      deviceID: deviceID, publicPoint: point, label: try row.isNull(2) ? nil : BoundedText(try row.text(2)),
      added: try row.isNull(3) ? nil : try row.unsigned(3), blocked: try row.isNull(4) ? nil : try row.unsigned(4))
  }

  private func change(_ sql: StaticString, _ values: Value...) throws(ServiceLedgerFault) -> Bool {
    do throws(DatabaseError) {
      return switch values.count {
      case 1: try database.run(sql, values[0]) == 1
      default: try database.run(sql, values[0], values[1]) == 1
      }
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }
}

/// The error for a durable record that could not be read or written. Nothing may be approved or issued without it.
package struct ServiceLedgerFault: Error, Equatable {
  /// The file of the record; nil for a record without a file.
  package let file: ServiceFile?
  /// The error of the database; nil for another kind of record.
  package let cause: DatabaseError?

  /// Creates the error.
  package init(_ file: ServiceFile? = nil, cause: DatabaseError? = nil) {
    (self.file, self.cause) = (file, cause)
  }
}
