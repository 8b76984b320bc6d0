import HoldfastCore
import HoldfastJSON

/// Which counter anchors a device: a TPM, and the index of a counter in it.
public struct CounterPlace: Sendable, Equatable {
  /// A device of the kernel's resource manager or a Unix socket, as an absolute path of at most 107 bytes.
  public let tpm: String
  /// From 0x01800000 to 0x01BFFFFF, the owner's range: 22 bits of the device id.
  ///
  /// Source: Registry of Reserved TPM 2.0 Handles and Localities, §2.2.
  public let index: UInt32

  /// The place of a device's counter; nil unless `tpm` is such a path.
  public init?(tpm: String, deviceID: DeviceID) {
    let path = tpm.utf8
    guard path.first == UInt8(ascii: "/"), path.count <= 107, !path.contains(0) else { return nil }
    self.tpm = tpm
    let bits = UInt32(deviceID[0]) << 16 | UInt32(deviceID[1]) << 8 | UInt32(deviceID[2])
    index = 0x0180_0000 | bits & 0x3f_ffff
  }
}

extension CounterPlace {
  /// Reads `{"tpm": path, "index": number}`; nil unless it is exactly that, and the counter of `deviceID`.
  init?(_ value: JSONValue, deviceID: DeviceID) {
    guard value.hasOnly(["tpm", "index"]), let tpm = value["tpm"]?.text, let index = value["index"]?.number else {
      return nil
    }
    self.init(tpm: tpm, deviceID: deviceID)
    guard index == self.index else { return nil }
  }

  var json: JSONValue { .object([("tpm", .string(tpm)), ("index", .integer(UInt64(index)))]) }
}
