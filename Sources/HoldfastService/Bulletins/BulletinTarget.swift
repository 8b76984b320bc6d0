import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage

/// A device or a group of devices whose bulletins are to say something.
enum BulletinTarget: Sendable {
  case device(DeviceID)
  case group(BoundedText<32>)

  /// The audience of the bulletins.
  func audience() throws(AdministrationFault) -> AudienceID {
    switch self {
    case .device(let id):
      guard let audience = AudienceID(id.bytes) else { throw .notFound }
      return audience
    case .group(let name):
      var cryptography = OpenSSLCryptography()
      do throws(CryptographyFailure) { return try HoldfastCore.audience(ofGroup: name, using: &cryptography) } catch {
        throw .fleet(.cryptography)
      }
    }
  }
}

extension FleetSession {
  /// Returns whether the device is registered, or a device is in the group.
  ///
  /// - Parameters:
  ///   - target: The device or the group.
  ///   - audience: The value of the column `audience`.
  func exists(_ target: BulletinTarget, _ audience: Value) throws(FleetFault) -> Bool {
    switch target {
    case .device: try row("SELECT id FROM devices WHERE id = $1", audience) != nil
    case .group: try row("SELECT device FROM group_devices WHERE audience = $1 LIMIT 1", audience) != nil
    }
  }

  /// Writes an entry into the log of changes about a device or a group.
  ///
  /// - Parameters:
  ///   - actions: The name of the change for a device, and for a group.
  ///   - target: The device or the group.
  ///   - actor: The operator.
  ///   - detail: What was said.
  func log(
    _ actions: (device: StaticString, group: StaticString), _ target: BulletinTarget, by actor: Actor, _ detail: String
  ) throws(FleetFault) {
    switch target {
    case .device(let id): try log(actions.device, hexadecimal(id), by: actor, detail)
    case .group(let name): try log(actions.group, name.description, by: actor, detail)
    }
  }
}

extension AdministrationRequest {
  /// Returns the device or the group in the body, of which there must be one.
  func bulletinTarget() throws(AdministrationFault) -> BulletinTarget {
    let group: BoundedText<32>? = try text("group")
    switch (body.member("device") != nil, group) {
    case (true, nil): return .device(try fixedBytes("device"))
    case (false, let group?): return .group(group)
    default: throw .mistake(JSONMistake(at: [.member("group")], expected: .form("a group, or device in its place")))
    }
  }
}

extension Schema.Property {
  /// The members that name the device or the group.
  static let bulletinTarget = [
    Schema.Property("device", .hexadecimal(digitCount: 32), "The device."),
    Schema.Property("group", .text(1...32), "The group, in place of a device."),
  ]
}
