import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage

/// Which devices the backend issues tokens for: the member `devices` of a service's policy.
package enum DeviceAdmission: String, Sendable, CaseIterable {
  /// Those that the owner registered.
  case listed
  /// Any device that the owner did not block. The first token for a device id settles which key it has.
  case firstCome = "first-come"
}

/// The owner's record of a device: it is registered, blocked, or both.
package struct RegisteredDevice: Sendable, Equatable {
  package let deviceID: DeviceID
  /// The device's public key; nil for a device that is blocked and not registered.
  package let publicPoint: P256Point?
  /// The owner's words for it, at most 64 bytes.
  package let label: BoundedText<64>?
  /// When it was registered, in Unix seconds.
  package let added: UInt64?
  /// Since when it is blocked, in Unix seconds; nil where it is not.
  package let blocked: UInt64?

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
  /// The device is registered now. Where tokens had been issued for its id under another key, they are revoked: the
  /// generation was raised to this one.
  case added(generation: UInt64?)
  /// It was registered before, and has this label now.
  case relabelled
  /// It was registered before, and nothing changed.
  case unchanged
  /// The id is registered with another key, and nothing changed.
  case anotherKey
}

extension IssuedBaselinesDatabase {
  /// Registers a device durably. A repetition changes nothing but the label, where one is given.
  ///
  /// The owner's word about the key replaces that of whoever came first: tokens that were issued for another key are revoked.
  ///
  /// - Parameters:
  ///   - label: at most 64 bytes; nil to leave it as it is.
  ///   - now: Unix seconds.
  package mutating func register(
    _ device: DeviceDescriptor, label: BoundedText<64>?, now: UInt64
  ) throws(LedgerFault) -> DeviceRegistration {
    let id = Value.copying(device.deviceID.bytes)
    let binding: Digest
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { binding = try deviceBinding(device, using: &cryptography) } catch {
      throw LedgerFault(.issuerLedger)
    }
    do throws(DatabaseError) {
      return try database.transaction { () throws(DatabaseError) in
        if let point = try database.oneBytes("SELECT point FROM listed WHERE device = ?", id) {
          guard point == [UInt8](copying: device.publicKey.point.bytes) else { return .anotherKey }
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
        guard let bound, bound != [UInt8](copying: binding.bytes) else { return .added(generation: nil) }
        try database.run("UPDATE device SET binding = ? WHERE device = ?", .copying(binding.bytes), id)
        return .added(generation: try raise(id))
      }
    } catch { throw LedgerFault(.issuerLedger, cause: error) }
  }

  /// Takes a device off the list durably; a block stays. False where it was not registered.
  package mutating func unregister(_ device: DeviceID) throws(LedgerFault) -> Bool {
    try change("DELETE FROM listed WHERE device = ?", .copying(device.bytes))
  }

  /// Blocks a device durably, which need not be registered. False where it was blocked before.
  ///
  /// - Parameter now: Unix seconds.
  package mutating func block(_ device: DeviceID, now: UInt64) throws(LedgerFault) -> Bool {
    try change(
      "INSERT OR IGNORE INTO blocked (device, since) VALUES (?, ?)", .copying(device.bytes), .unsigned(now))
  }

  /// Ends a block durably. False where there was none.
  package mutating func unblock(_ device: DeviceID) throws(LedgerFault) -> Bool {
    try change("DELETE FROM blocked WHERE device = ?", .copying(device.bytes))
  }

  /// Whether a token was issued for the device, or the owner registered or blocked it.
  package func knows(_ device: DeviceID) throws(LedgerFault) -> Bool {
    do throws(DatabaseError) {
      return try database.oneUnsigned(
        """
        SELECT EXISTS (SELECT 1 FROM listed WHERE device = ?1) OR EXISTS (SELECT 1 FROM blocked WHERE device = ?1)
          OR EXISTS (SELECT 1 FROM device WHERE device = ?1)
        """, .copying(device.bytes)) == 1
    } catch { throw LedgerFault(.issuerLedger, cause: error) }
  }

  /// The owner's record of a device; nil where there is none.
  package func registration(of device: DeviceID) throws(LedgerFault) -> RegisteredDevice? {
    do throws(DatabaseError) {
      return try database.one(
        """
        SELECT id.device, point, label, added, since FROM (SELECT ? AS device) AS id
          LEFT JOIN listed USING (device) LEFT JOIN blocked USING (device) WHERE point NOT NULL OR since NOT NULL
        """, .copying(device.bytes)
      ) { (row) throws(DatabaseError) in try Self.registeredDevice(row) }
    } catch { throw LedgerFault(.issuerLedger, cause: error) }
  }

  /// The owner's records of all devices, sorted by id.
  package func registeredDevices() throws(LedgerFault) -> [RegisteredDevice] {
    do throws(DatabaseError) {
      return try database.all(
        """
        SELECT id.device, point, label, added, since
          FROM (SELECT device FROM listed UNION SELECT device FROM blocked) AS id
          LEFT JOIN listed USING (device) LEFT JOIN blocked USING (device) ORDER BY id.device
        """
      ) { (row) throws(DatabaseError) in try Self.registeredDevice(row) }
    } catch { throw LedgerFault(.issuerLedger, cause: error) }
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

  private func change(_ sql: StaticString, _ values: Value...) throws(LedgerFault) -> Bool {
    do throws(DatabaseError) {
      return switch values.count {
      case 1: try database.run(sql, values[0]) == 1
      default: try database.run(sql, values[0], values[1]) == 1
      }
    } catch { throw LedgerFault(.issuerLedger, cause: error) }
  }
}

/// A durable record could not be read or written: nothing may be approved or issued without it.
package struct LedgerFault: Error, Equatable {
  /// The record's file; nil for a record that is none.
  package let file: ServiceFile?
  /// What the database said; nil for another kind of record.
  package let cause: DatabaseError?

  package init(_ file: ServiceFile? = nil, cause: DatabaseError? = nil) {
    (self.file, self.cause) = (file, cause)
  }
}
