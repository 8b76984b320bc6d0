/// The 48 bits that name a Bluetooth device; `00:00:00:00:00:00` is any.
public struct BluetoothAddress: Sendable, Hashable, CustomStringConvertible {
  /// Who gave a device of Bluetooth Low Energy its address. Source: Bluetooth Core 5.4, volume 6 part B, section 1.3.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The manufacturer, for good.
    case `public`
    /// The device itself.
    case random
  }

  /// Any address.
  public static let any = BluetoothAddress(value: 0)

  /// The address as a number: the pair that is written first is the most significant.
  public let value: UInt64

  /// Whether this stands for any address.
  public var isAny: Bool { self == .any }

  init(value: UInt64) {
    self.value = value
  }

  /// Reads six pairs of hex digits with colons between them.
  ///
  /// - Throws: ``EndpointError/address`` for anything else.
  public init(parsing text: some StringProtocol) throws(EndpointError) {
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
  public var description: String {
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
