import HoldfastCore

/// What the operating system and the board say of which machine this is.
///
/// DMI is left out: most of it is for root alone, and DM would depend on the user.
struct MachineIdentity {
  /// `/etc/machine-id`; nil where there is none or it was not set yet.
  let machineID: [UInt8]?
  /// The device tree's serial number; nil where there is none.
  let serialNumber: [UInt8]?

  init(_ files: HostFiles) throws(MeasurementError) {
    let id = try files.contentsIfPresent(of: "/etc/machine-id", as: .machineID).map { Array($0[...].trimmed) } ?? []
    machineID = id.isEmpty || id[...].equals("uninitialized") ? nil : id
    let serial = try files.contentsIfPresent(of: "/proc/device-tree/serial-number", as: .serialNumber) ?? []
    serialNumber = serial.allSatisfy { $0 == 0 } ? nil : serial
  }

  var isAbsent: Bool { machineID == nil && serialNumber == nil }

  /// The deterministic CBOR array of both, null for what is absent; no bytes when both are.
  var encoded: [UInt8] {
    guard !isAbsent else { return [] }
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: 2)
    for part in [machineID, serialNumber] {
      if let part { bytes.appendCBOR(bytes: part.span) } else { bytes.appendCBORNull() }
    }
    return bytes
  }
}
