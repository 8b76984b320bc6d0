/// The 48 bits that name a Bluetooth device; `00:00:00:00:00:00` is any.
package struct BluetoothAddress: Sendable, Hashable, CustomStringConvertible {
  /// Who gave a device of Bluetooth Low Energy its address. Source: Bluetooth Core 5.4, volume 6 part B, section 1.3.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The manufacturer, for good.
    case `public`
    /// The device itself.
    case random
  }

  /// Any address.
  package static let any = BluetoothAddress(value: 0)

  /// The address as a number: the pair that is written first is the most significant.
  package let value: UInt64

  /// Whether this stands for any address.
  package var isAny: Bool { self == .any }

  init(value: UInt64) {
    self.value = value
  }

  /// Reads six pairs of hex digits with colons between them.
  ///
  /// - Throws: ``EndpointError/address`` for anything else.
  package init(parsing text: some StringProtocol) throws(EndpointError) {
    let pairs = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard pairs.count == 6 else { throw .address }
    var value: UInt64 = 0
    for pair in pairs {
      guard pair.count == 2 else { throw .address }
      for digit in pair {
        guard let nibble = hexDigitValue(digit) else { throw .address }
        value = value << 4 | UInt64(nibble)
      }
    }
    self.value = value
  }

  /// Six pairs of capital hex digits with colons between them.
  package var description: String {
    stride(from: 40, through: 0, by: -8).map { shift in
      let octet = UInt8(truncatingIfNeeded: value >> UInt64(shift))
      return (octet < 16 ? "0" : "") + String(octet, radix: 16, uppercase: true)
    }.joined(separator: ":")
  }
}

/// The value of the hex digit `character`, an ASCII code; nil where it is none.
func hexDigitValue(_ character: UInt8) -> UInt8? {
  switch character {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
  default: nil
  }
}

/// Which Bluetooth protocol carries a session, and the number of its port at the listening end.
///
/// A number that is nil is left to the kernel where one listens, and to the peer's service discovery where one connects.
package enum BluetoothPort: Sendable, Hashable {
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
