/// Which Bluetooth protocol carries a session, and the number of its port at the listening end.
///
/// A number that is nil is left to the kernel where one listens, and to the peer's service discovery where one connects.
public enum BluetoothPort: Sendable, Hashable {
  /// L2CAP over BR/EDR: an odd PSM from 0x1001 on whose upper byte is even.
  case l2cap(psm: UInt16?)
  /// RFCOMM: a channel from 1 to 30.
  case rfcomm(channel: UInt8?)
  /// A credit-based channel of L2CAP over LE: a PSM from 0x80 to 0xff, and the kind of the address that goes with it.
  case lowEnergy(psm: UInt16, BluetoothAddress.Kind)

  /// Whether no standard has reserved the PSM.
  ///
  /// Source: Bluetooth Core 5.4, volume 3 part A, section 4.2.
  static func isDynamic(psm: UInt16) -> Bool { psm >= 0x1001 && psm & 0x0101 == 0x0001 }

  /// Source: Bluetooth Core 5.4, volume 3 part A, section 4.22.
  static func isDynamic(lowEnergyPSM psm: UInt16) -> Bool { 0x80...0xff ~= psm }

  /// Source: RFCOMM 1.2, section 5.4.
  static func isServer(channel: UInt16) -> Bool { 1...30 ~= channel }

  /// How messages are told apart there.
  var framing: Framing {
    switch self {
    case .l2cap, .lowEnergy: .packets
    case .rfcomm: .stream
    }
  }

  /// Whether the peer's service discovery has to be asked for the number.
  var isOpen: Bool { self == .l2cap(psm: nil) || self == .rfcomm(channel: nil) }

  /// What the local end of a connection is bound to: the same protocol without the number.
  ///
  /// The kind of an LE address is the peer's: an adapter is bound to by its public one.
  var local: BluetoothPort {
    switch self {
    case .l2cap: .l2cap(psm: nil)
    case .rfcomm: .rfcomm(channel: nil)
    case .lowEnergy: .lowEnergy(psm: 0, .public)
    }
  }
}
