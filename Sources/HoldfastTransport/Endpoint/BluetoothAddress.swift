import HoldfastCore

/// A 48-bit Bluetooth address of an adapter or a peer; `00:00:00:00:00:00` stands for any.
public struct BluetoothAddress: Sendable, Hashable, CustomStringConvertible {
  /// The origin of a Bluetooth Low Energy address. Source: Bluetooth Core 5.4, volume 6 part B, section 1.3.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    /// An address that the manufacturer assigned; it never changes.
    case `public`
    /// An address that the adapter generated itself.
    case random
  }

  /// The address that stands for any adapter or peer: all bits zero.
  package static let any = BluetoothAddress(value: 0)

  /// The address as a number of 48 bits. The pair that is written first is the most significant.
  package let value: UInt64

  /// Whether this address stands for any adapter or peer.
  package var isAny: Bool { self == .any }

  package init(value: UInt64) {
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
        guard let nibble = hexadecimalValue(digit) else { throw .address }
        value = value << 4 | UInt64(nibble)
      }
    }
    self.value = value
  }

  /// The address as text: six pairs of capital hex digits with colons between them.
  public var description: String {
    stride(from: 40, through: 0, by: -8).map { shift in
      let octet = UInt8(truncatingIfNeeded: value >> UInt64(shift))
      return (octet < 16 ? "0" : "") + String(octet, radix: 16, uppercase: true)
    }.joined(separator: ":")
  }
}

/// A Bluetooth protocol that carries a session, and its port number at the listening end.
///
/// If the number is nil, a listener lets the kernel choose it, and a connecting end asks the peer's service discovery for it.
package enum BluetoothPort: Sendable, Hashable {
  /// L2CAP over BR/EDR: an odd PSM of at least 0x1001 whose upper byte is even.
  case l2cap(psm: UInt16?)
  /// RFCOMM: a channel from 1 to 30.
  case rfcomm(channel: UInt8?)
  /// A credit-based L2CAP channel over LE: a PSM from 0x80 to 0xff, and the kind of the address that belongs to it.
  case lowEnergy(psm: UInt16, BluetoothAddress.Kind)

  /// Returns whether `psm` is a valid PSM that no standard has reserved.
  ///
  /// Source: Bluetooth Core 5.4, volume 3 part A, section 4.2.
  static func isDynamic(psm: UInt16) -> Bool { psm >= 0x1001 && psm & 0x0101 == 0x0001 }

  /// Returns whether `psm` is an LE PSM that no standard has reserved.
  ///
  /// Source: Bluetooth Core 5.4, volume 3 part A, section 4.22.
  static func isDynamic(lowEnergyPSM psm: UInt16) -> Bool { 0x80...0xff ~= psm }

  /// Returns whether `channel` is a server channel of RFCOMM.
  ///
  /// Source: RFCOMM 1.2, section 5.4.
  static func isServer(channel: UInt16) -> Bool { 1...30 ~= channel }

  /// The transport of this port.
  var scheme: Scheme {
    switch self {
    case .l2cap: .l2cap
    case .rfcomm: .rfcomm
    case .lowEnergy: .lowEnergy
    }
  }

  /// Whether the number is missing, so that the peer's service discovery must supply it.
  var isOpen: Bool { self == .l2cap(psm: nil) || self == .rfcomm(channel: nil) }

  /// The port to which the local end of a connection is bound: the same protocol without the number.
  ///
  /// The kind of an LE address describes the peer. The local end is bound by the adapter's public address.
  var local: BluetoothPort {
    switch self {
    case .l2cap: .l2cap(psm: nil)
    case .rfcomm: .rfcomm(channel: nil)
    case .lowEnergy: .lowEnergy(psm: 0, .public)
    }
  }
}
